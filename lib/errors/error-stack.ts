/**
 * Gives an error a stack that begins with its name, message and detail, so whatever prints it (a console, a logger, a
 * test runner) shows both texts. The stack is made when somebody reads it, because most errors are handled unread.
 *
 * @param below this function and its callees are left out of the frames
 */
export function setLazyStack(
  error: Error & { readonly detail: string },
  below: NonNullable<Parameters<typeof Error.captureStackTrace>[1]>,
): void {
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, below);
  let text: string | undefined;
  const stack = (): string => {
    const { name, message, detail } = error;
    const frames = String(trace.stack ?? '')
      .split('\n')
      .slice(1);
    return [`${name}: ${message}`, ...(detail === message ? [] : [detail]), ...frames].join('\n');
  };
  // Redefining it would first write the old one.
  delete error.stack;
  Object.defineProperty(error, 'stack', {
    get: () => (text ??= stack()),
    set: (value: string) => (text = value),
    configurable: true,
  });
}

/**
 * Turns stack traces off until `again()`. The first trace of an error that gets its own by `setLazyStack` would be half
 * the cost of making it, which counts where thousands of callers time out at once.
 */
export function withoutTraces(): { again(): void } {
  const limit = Error.stackTraceLimit;
  // Where it can't be set, as with frozen intrinsics, this does nothing.
  Reflect.set(Error, 'stackTraceLimit', 0);
  return { again: () => Reflect.set(Error, 'stackTraceLimit', limit) };
}
