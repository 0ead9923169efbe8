import { logger } from '../../log/logger.js';
import { isForeignObservable, isOtherStream } from './stream-kind.js';

const warned = new Set<string>();

/** Warns, once for each method, that its result will be read without the lock. */
export function warnIfUncovered(result: unknown, method: string): void {
  if (warned.has(method)) return;
  const what = whatIsUncovered(result);
  if (what === undefined) return;
  warned.add(method);
  logger.warn(`${method}() returned ${what}`);
}

function whatIsUncovered(result: unknown): string | undefined {
  if (isOtherStream(result)) {
    return (
      'a stream that does not say when it ends, so its lock does not cover the reading of it. ' +
      `Give an HTTP handler scope: 'request'; make any other method "async *", and "yield*" the stream.`
    );
  }
  if (isForeignObservable(result)) {
    return (
      'a store, or an Observable of another library than RxJS, ' +
      'so its lock does not cover what it does for subscribers. If that needs the lock, return from(it) of RxJS.'
    );
  }
  return undefined;
}
