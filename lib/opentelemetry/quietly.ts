import { logger } from '../log/logger.js';

let hasFailed = false;

/**
 * Does what may throw, such as a sampler or a span processor of the app: no lock fails for that. Logs the first error.
 */
export function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!hasFailed) logger.error('Locks can not be traced.', (error as Partial<Error> | undefined)?.stack);
    hasFailed = true;
    return undefined;
  }
}
