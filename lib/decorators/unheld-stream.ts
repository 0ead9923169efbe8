import { Logger, StreamableFile } from '@nestjs/common';

const logger = new Logger('RedisLock');
const told = new Set<string>();

/** Says, once for each method, that what it has returned is going to be read without its lock. */
export function warnOfUnheld(result: unknown, site: string): void {
  if (!isUnheld(result) || told.has(site)) return;
  told.add(site);
  logger.warn(
    `${site}() returned a stream that does not say when it ends, so its lock does not cover the reading of it. ` +
      `Give an HTTP handler scope: 'request'; make any other method "async *", and "yield*" the stream.`,
  );
}

/** Node streams, web streams, streams of API clients, cursors of databases. An iterator has a `next`, and is held. */
function isUnheld(result: unknown): boolean {
  if (typeof result !== 'object' || result === null) return false;
  return result instanceof StreamableFile || (Symbol.asyncIterator in result && !('next' in result));
}
