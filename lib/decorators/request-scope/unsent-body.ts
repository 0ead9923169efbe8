import { type Readable, Stream } from 'node:stream';
import { ignoringErrors } from '../../core/unread-result.js';
import { isAsyncIterable, isFile } from '../stream/stream-kind.js';

/**
 * Ends the body of a response that is not sent, as Nest 12 does. Another value is left alone: `destroy()` or `cancel()`
 * of an entity does something else.
 */
export function closeUnsent(value: unknown): void {
  ignoringErrors(() => {
    const body = isFile(value) ? value.getStream() : value instanceof Response ? value.body : value;
    if (isReadable(body)) {
      // What has not begun may fail still, and nobody listens.
      body.on('error', () => undefined).destroy();
    } else if (body instanceof ReadableStream) {
      if (!body.locked) body.cancel().catch(() => undefined);
    } else if (isAsyncIterable(body) && typeof (body as { then?: unknown }).then !== 'function') {
      leave(body).catch(() => undefined);
    }
  });
}

/** Whether it is a readable stream of Node, or of a library such as `readable-stream`. */
const isReadable = (body: unknown): body is Readable =>
  body instanceof Stream &&
  typeof (body as Readable).read === 'function' &&
  typeof (body as Readable).destroy === 'function';

async function leave(iterable: AsyncIterable<unknown>): Promise<void> {
  await iterable[Symbol.asyncIterator]().return?.();
}
