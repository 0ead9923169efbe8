import { Logger } from '@nestjs/common';
import { isOtherStream } from './stream-kind.js';

const logger = new Logger('RedisLock');
const told = new Set<string>();

/** Says, once for each method, that what it has returned is going to be read without its lock. */
export function warnIfUncovered(result: unknown, site: string): void {
  if (!isOtherStream(result) || told.has(site)) return;
  told.add(site);
  logger.warn(
    `${site}() returned a stream that does not say when it ends, so its lock does not cover the reading of it. ` +
      `Give an HTTP handler scope: 'request'; make any other method "async *", and "yield*" the stream.`,
  );
}
