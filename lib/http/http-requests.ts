import type { LockExceptionFactory } from './exception-factory.js';
import {
  attachToRequest,
  clientGoneSignal,
  isAroundRequest,
  isRequestOver,
  isRequestRunning,
  noteRequestWork,
  watchClient,
} from './http-request.js';

/**
 * Connects a `LockService` with the HTTP requests that its callers handle: a client that goes away ends the wait of its
 * request, and lock errors become responses.
 *
 * @param factory of the module: it makes the exceptions to send instead
 */
export function httpRequests(factory: LockExceptionFactory | undefined) {
  return {
    waitSignal: clientGoneSignal,
    isAround: isAroundRequest,
    watch: watchClient,
    isRunning: isRequestRunning,
    isOver: isRequestOver,
    noteWork: noteRequestWork,
    attachError: <E>(error: E): E => attachToRequest(error, factory),
    get changesErrors(): boolean {
      return factory !== undefined || isRequestRunning();
    },
  };
}
