import { rejectLater } from '../../clock/next-turn.js';
import type { LockOptionsError } from '../../errors/lock-options.error.js';
import { attachToRequest } from '../../http/http-request.js';
import type { ReturnKind } from '../method/checked-method.js';
import type { Around } from '../method/wrap-method.js';
import { lazyIterator, lazyObservable, promiseOrIterator } from '../stream/lazy-stream.js';
import type { LockCall } from './lock-call.js';

/**
 * Makes the result of a call fit its method. A stream is returned at once; the call begins when somebody reads the
 * stream.
 */
export function aroundCall(kind: ReturnKind, call: LockCall): Around {
  switch (kind) {
    case 'observable':
      return (body, self, args) => lazyObservable((unsubscribed) => call(body, self, args, unsubscribed));
    case 'iterator':
      return (body, self, args) => lazyIterator((left) => call(body, self, args, left));
    case 'unknown':
      return (body, self, args) => promiseOrIterator(call(body, self, args));
    case 'promise':
      return call;
  }
}

/**
 * Refuses all calls of a method whose decorator has a mistake, also where no app has started that could have reported
 * it.
 */
export function refuseCalls(error: LockOptionsError, kind: ReturnKind): Around {
  return aroundCall(kind, () => rejectLater(attachToRequest(error)));
}
