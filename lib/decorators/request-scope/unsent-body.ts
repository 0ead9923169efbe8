import { close, ignoringErrors } from '../../core/unread-result.js';
import { isFile } from '../stream/stream-kind.js';

/** Ends the body of a response that is not sent, as Nest 12 does. */
export function closeUnsent(value: unknown): void {
  ignoringErrors(() => {
    const body = isFile(value) ? value.getStream() : value;
    if (close(body) || !isBody(body)) return;
    void (async () => body[Symbol.asyncIterator]().return?.())().catch(() => undefined);
  });
}

/** Whether Nest would send it as a stream. What can be awaited stands for what it resolves to. */
function isBody(value: unknown): value is AsyncIterable<unknown> {
  const { then, [Symbol.asyncIterator]: iterator } = Object(value) as Partial<
    AsyncIterable<unknown> & Promise<unknown>
  >;
  return typeof iterator === 'function' && typeof then !== 'function';
}
