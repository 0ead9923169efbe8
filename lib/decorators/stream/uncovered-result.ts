import { CONTROLLER_WATERMARK } from '@nestjs/common/constants.js';
import { logger } from '../../log/logger.js';
import { isCallable, isForeignObservable, isOtherStream } from './stream-kind.js';

const warned = new Set<string>();

/** Warns, once for each method, that its result will be read, or called, without the lock. */
export function warnIfUncovered(result: unknown, method: string, self: object): void {
  if (warned.has(method)) return;
  const what = whatIsUncovered(result, self);
  if (what === undefined) return;
  warned.add(method);
  logger.warn(`${method}() returned ${what}`);
}

function whatIsUncovered(result: unknown, self: object): string | undefined {
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
  if (isController(self) && isCallable(result)) {
    return (
      'functions, which are called without its lock, as that of tsRestHandler() is. ' +
      "Give the HTTP handler scope: 'request', below the decorator that makes its route."
    );
  }
  return undefined;
}

/** Other objects return functions for their callers, who know that the method has ended by then. */
function isController(self: object): boolean {
  return typeof self.constructor === 'function' && Reflect.hasMetadata(CONTROLLER_WATERMARK, self.constructor);
}
