import type { LockOptionsError } from '../errors/lock-options.error.js';
import { attachToRequest } from '../http/http-request.js';
import type { ReturnKind } from './method/checked-method.js';
import { methodName } from './method/method-name.js';
import { currentLockParameters } from './current-lock.decorator.js';
import { keyResolver, requestKeyResolver } from './key/key-resolver.js';
import { lazyIterator, lazyObservable, readable } from './stream/lazy-stream.js';
import { lockCall, type LockCall } from './call/lock-call.js';
import { bindRequestLock } from './request/request-lock.js';
import type { ResolvedDecoratorOptions } from './with-lock.options.js';
import type { Around } from './method/wrap-method.js';

/** What is put around a method, and what else is bound to it. */
export interface MethodWrapper {
  readonly around: Around;
  readonly bind?: MethodDecorator;
}

/** @throws LockOptionsError when the key does not fit the method */
export function wrapForCall(
  key: unknown,
  prototype: object,
  name: string | symbol,
  kind: ReturnKind,
): (options: ResolvedDecoratorOptions) => MethodWrapper {
  const site = methodName(prototype, name);
  const locked = {
    site,
    keyOf: keyResolver(key, prototype, name, site),
    lockParameters: currentLockParameters(prototype, name),
  };
  return (options) => ({ around: ofKind(kind, lockCall({ ...locked, options })) });
}

/** @throws LockOptionsError for a bad key */
export function wrapForRequest(
  key: unknown,
  prototype: object,
  name: string | symbol,
): (options: ResolvedDecoratorOptions) => MethodWrapper {
  const site = methodName(prototype, name);
  const locked = { site, keyOf: requestKeyResolver(key, site), lockParameters: currentLockParameters(prototype, name) };
  return (options) => bindRequestLock({ ...locked, options });
}

/** Refuses each call of a method that is not decorated rightly, also where no app has started that could have told so. */
export function refusal(error: LockOptionsError, kind: ReturnKind): MethodWrapper {
  return { around: ofKind(kind, () => Promise.reject(attachToRequest(error))) };
}

/** A stream is returned at once; the call begins when somebody reads it. */
function ofKind(kind: ReturnKind, call: LockCall): Around {
  switch (kind) {
    case 'observable':
      return (body, self, args) => lazyObservable((unsubscribed) => call(body, self, args, unsubscribed));
    case 'iterator':
      return (body, self, args) => lazyIterator((left) => call(body, self, args, left));
    case 'unknown':
      return (body, self, args) => readable(call(body, self, args));
    case 'promise':
      return call;
  }
}
