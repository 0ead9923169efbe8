/** A trace context of version 00: trace, span and flags. https://www.w3.org/TR/trace-context/ */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Checks what a process says of its trace. Returns undefined for anything but a trace context. */
export function checkedTraceparent(value: unknown): string | undefined {
  return typeof value === 'string' && TRACEPARENT.test(value) ? value : undefined;
}
