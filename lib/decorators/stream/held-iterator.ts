import { AsyncLocalStorage } from 'node:async_hooks';
import { noteWork } from '../../core/result-work.js';
import { IteratorSource } from './iterator-source.js';
import { OpenCalls } from './open-calls.js';
import { assertNotLost, leaseMsOf, StreamHold, toldError, type StreamLock } from './stream-hold.js';

/** How long a call may go on when its reader has left, in ms: it may wait for an event that never comes. */
const LONGEST_AFTER_LEAVING_MS = 5000;

interface StepOptions {
  /** What it returns once the iterator has ended. */
  readonly atEnd: () => IteratorResult<unknown>;
  /** Whether the reader leaves, unless the source goes on. */
  readonly isLast: boolean;
  /** Whether the step fails when the lock is lost. */
  readonly tellsLoss: boolean;
}

/**
 * Makes an async iterator keep the lock until it is done, has thrown, or was left by `return()` or `throw()`, and no
 * call of it works any more. After `return()` and `throw()` that is some seconds later at the latest.
 */
export function heldIterator(
  returned: AsyncIterableIterator<unknown>,
  streamLock: StreamLock,
): AsyncIterableIterator<unknown> {
  const { lock, onLost, requests } = streamLock;
  const source = new IteratorSource(returned);
  const hold = new StreamHold(streamLock);
  const calls = new OpenCalls();
  const inside = AsyncLocalStorage.snapshot();
  let isEnding = false;

  const end = async (longestMs?: number): Promise<void> => {
    isEnding = true;
    if (lock.isHeld) await new Promise<void>((resolve) => calls.onceSettled(resolve, longestMs));
    await hold.end();
  };
  const step = async (
    go: () => Promise<IteratorResult<unknown>>,
    { atEnd, isLast, tellsLoss }: StepOptions,
  ): Promise<IteratorResult<unknown>> => {
    if (isEnding) return atEnd();
    const longestMs = isLast ? Math.min(leaseMsOf(lock), LONGEST_AFTER_LEAVING_MS) : undefined;
    try {
      if (tellsLoss) hold.startReading(onLost);
      const result = await calls.during(() => inside(go));
      if (tellsLoss && !hold.hasEnded) assertNotLost(streamLock);
      // Who leaves by `return()` does not come back, even if a `finally` yields.
      if (result.done || !tellsLoss) await end(longestMs);
      // Only the release may find it out.
      if (result.done && tellsLoss) assertNotLost(streamLock);
      return result;
    } catch (error) {
      await end(longestMs);
      if (error === lock.loss) void inside(() => source.return()).catch(() => undefined);
      throw tellsLoss ? toldError(streamLock, error) : requests.attachError(error);
    }
  };
  const held: AsyncIterableIterator<unknown> = {
    next: (...sent: [] | [unknown]) =>
      step(() => source.next(...sent), { atEnd: () => done(undefined), isLast: false, tellsLoss: true }),
    // Who leaves does not want to know, and may not listen to an error: GraphQL does not.
    return: (value: unknown) =>
      step(() => source.return(value), { atEnd: () => done(value), isLast: true, tellsLoss: false }),
    throw: (error: unknown) =>
      step(() => source.throw(error), { atEnd: () => raise(error), isLast: true, tellsLoss: true }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  return noteWork(held, { ended: hold.ended, leave: () => hold.leaveUnread(returned) });
}

const done = (value: unknown): IteratorResult<unknown> => ({ done: true, value });

function raise(error: unknown): never {
  throw error;
}
