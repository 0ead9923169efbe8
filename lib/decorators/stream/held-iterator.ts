import { AsyncLocalStorage } from 'node:async_hooks';
import { assertNotLost, noteHold, StreamHold, type StreamLock } from './stream-hold.js';

/** Makes an async iterator keep the lock until it is done, has thrown, or was left by `return()` or `throw()`. */
export function heldIterator(source: AsyncIterator<unknown>, streamLock: StreamLock): AsyncIterableIterator<unknown> {
  const { lock, onLost, requests } = streamLock;
  const hold = new StreamHold(streamLock);
  const inside = AsyncLocalStorage.snapshot();

  const step = async (go: () => Promise<IteratorResult<unknown>>): Promise<IteratorResult<unknown>> => {
    if (hold.hasEnded) return { done: true, value: undefined };
    try {
      hold.startReading(onLost);
      const result = await inside(go);
      if (onLost === 'throw' && !hold.hasEnded) assertNotLost(lock);
      if (result.done) await hold.end();
      return result;
    } catch (error) {
      await hold.end();
      if (error === lock.loss) void inside(async () => source.return?.()).catch(() => undefined);
      throw requests.attachError(error);
    }
  };
  const held: AsyncIterableIterator<unknown> = {
    next: (...sent: [] | [unknown]) => step(() => source.next(...sent)),
    return: (value: unknown) => step(async () => source.return?.(value) ?? { done: true, value }),
    throw: (error: unknown) =>
      step(() => {
        if (!source.throw) throw error;
        return source.throw(error);
      }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  return noteHold(held, hold);
}
