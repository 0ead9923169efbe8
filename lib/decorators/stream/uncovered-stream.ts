import { logger } from '../../log/logger.js';
import { isOtherStream } from './stream-kind.js';

const warned = new Set<string>();

/** Warns, once for each method, that its result will be read without the lock. */
export function warnIfUncovered(result: unknown, method: string): void {
  if (!isOtherStream(result) || warned.has(method)) return;
  warned.add(method);
  logger.warn(
    `${method}() returned a stream that does not say when it ends, so its lock does not cover the reading of it. ` +
      `Give an HTTP handler scope: 'request'; make any other method "async *", and "yield*" the stream.`,
  );
}
