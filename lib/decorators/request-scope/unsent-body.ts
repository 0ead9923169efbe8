import { ignoringErrors } from '../../core/unread-result.js';
import { isFile } from '../stream/stream-kind.js';

/** What a body may have, of Node, of the web or of an iterator. */
interface Body extends Partial<AsyncIterable<unknown>> {
  readonly locked?: boolean;
  readonly cancel?: () => Promise<unknown>;
  readonly on?: (event: 'error', listener: () => void) => unknown;
  readonly destroy?: () => unknown;
  readonly then?: unknown;
}

/** Ends the body of a response that is not sent, as Nest 12 does. What can be awaited is none. */
export function closeUnsent(value: unknown): void {
  ignoringErrors(() => {
    const body = bodyOf(value) as Body | null | undefined;
    if (typeof body !== 'object' || body === null || typeof body.then === 'function') return;
    if (typeof body.destroy === 'function' && typeof body.on === 'function') {
      // What has not begun may fail still, and nobody listens.
      body.on('error', () => undefined);
      body.destroy();
    } else void endOf(body)?.catch(() => undefined);
  });
}

const bodyOf = (value: unknown): unknown =>
  isFile(value) ? value.getStream() : value instanceof Response ? value.body : value;

/** Ends a web stream, or what `for await` can read. */
async function endOf(body: Body): Promise<unknown> {
  if (typeof body.cancel === 'function') return body.locked ? undefined : body.cancel();
  return body[Symbol.asyncIterator]?.().return?.();
}
