import { METHOD_METADATA, RESPONSE_PASSTHROUGH_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { currentLockMethods } from '../decorators/current-lock.decorator.js';
import { hiddenByClass } from '../decorators/instance/hidden-locks.js';
import { isReached, lockedMethods, type LockedMethod } from '../decorators/method/locked-methods.js';
import { shownMethod } from '../decorators/method/method-name.js';
import { ownerOf, ownersOf } from '../decorators/method/prototypes.js';
import { methodsWith } from '../decorators/request-scope/lock-routes.js';
import { requestLockOf } from '../decorators/request-scope/request-lock.interceptor.js';
import { ownMethod } from '../decorators/source/class-text.js';
import { callsSuper } from '../decorators/source/super-calls.js';
import { mistake } from '../errors/mistakes.js';
import { copiedMethods } from './copied-methods.js';
import { roleWithoutCatch } from './role-without-catch.js';

/**
 * Finds what would break a lock of a class.
 *
 * @param prototype of a class that Nest knows
 */
export function mistakesOf(prototype: object): readonly string[] {
  const methods = lockedMethods(prototype);
  const reached = methods.filter((method) => isReached(prototype, method));
  const own = methods.filter(({ owner, name }) => owner === ownerOf(prototype, name));
  return [
    ...reached.flatMap(({ mistakes }) => mistakes ?? []),
    ...hiddenByClass(prototype).map(({ mistake }) => mistake),
    ...currentLockWithoutLock(prototype),
    ...copiedMethods(prototype),
    ...methods.flatMap((method) => requestLockCalledBySuper(prototype, method)),
    ...own.flatMap((method) => [
      ...transactionAroundLock(method),
      ...requestLockWithoutRequest(prototype, method),
      ...skippedWithoutResponse(prototype, method),
      ...errorNobodyCatches(prototype, method),
    ]),
  ];
}

/** The interceptor of the handler takes the lock of a request, and an override is the handler now. */
function requestLockCalledBySuper(prototype: object, { owner: locked, name, scope }: LockedMethod): readonly string[] {
  if (scope === 'call' || ownerOf(prototype, name) === locked) return [];
  for (const owner of ownersOf(prototype, name)) {
    if (owner === locked) break;
    if (!callsSuper(owner, name)) return [];
  }
  const [handler, base] = [shownMethod(prototype, name), shownMethod(locked, name)];
  const what =
    `${handler} calls ${base} by super. ` +
    `The lock of ${base} has scope: 'request', which is taken only for the handler ` +
    'that the decorator stands on, so every call would be refused.';
  return [
    mistake(what, [`Put @WithLock with scope: 'request' on ${handler}, and let both call a method without a lock.`]),
  ];
}

/** Only the `@WithLock` of the same method fills in `@CurrentLock()`. */
function currentLockWithoutLock(prototype: object): readonly string[] {
  const reached = currentLockMethods(prototype).filter(({ owner, name }) => ownerOf(prototype, name) === owner);
  const unlocked = reached.filter(
    ({ owner, name }) => !lockedMethods(prototype).some((method) => method.owner === owner && method.name === name),
  );
  return unlocked.map(({ owner, name }) =>
    mistake(
      `${shownMethod(owner, name)} has a parameter with @CurrentLock(), but no @WithLock, so it would get no lock.`,
      [
        `Put @WithLock on ${shownMethod(owner, name)}.`,
        'For the lock that a caller holds, inject LockService and call current().',
      ],
    ),
  );
}

function transactionAroundLock({ owner, name, transaction }: LockedMethod): readonly string[] {
  const by = transaction();
  if (!by) return [];
  const what =
    `${shownMethod(owner, name)} has @Transactional (of ${by}) above @WithLock, ` +
    'so its transaction would commit after the lock is released.';
  return [
    mistake(what, ['Write @WithLock above @Transactional: the lock is then held until the transaction has ended.']),
  ];
}

function isHandler(method: object): boolean {
  return Reflect.hasMetadata(METHOD_METADATA, method);
}

function requestLockWithoutRequest(
  prototype: object,
  { owner, name, scope, mistakes }: LockedMethod,
): readonly string[] {
  if (scope === 'call' || mistakes) return [];
  const handler = ownMethod(owner, name) as object;
  const lock = requestLockOf(handler);
  if (lock && methodsWith(lock, owner).some(isHandler)) return [];
  const isRoute = isHandler(handler);
  const why = isRoute ? 'a decorator above has dropped its metadata' : 'is not an HTTP handler';
  const remedies = isRoute
    ? ['Write @WithLock above that decorator.']
    : [
        'Leave out the scope: the lock is then held for each call.',
        'Put it on the method that has @Get(), @Post() or the like.',
      ];
  return [
    mistake(
      `${shownMethod(prototype, name)} has a lock with scope: 'request', but ${why}, so every call would be refused.`,
      remedies,
    ),
  ];
}

/** The keys of `@Res()` and `@Next()` in the metadata of a handler's parameters, before their positions. */
const RESPONSE_PARAMETER = /^[12]:/;

/** Nest sends nothing for a handler that has the response itself: a skipped handler would leave its client waiting. */
function skippedWithoutResponse(prototype: object, { owner, name, skips }: LockedMethod): readonly string[] {
  const handler = ownMethod(owner, name) as object;
  if (!skips || !isHandler(handler)) return [];
  const type = prototype.constructor;
  const parameters = (Reflect.getMetadata(ROUTE_ARGS_METADATA, type, name) ?? {}) as object;
  const responds = Object.keys(parameters).some((key) => RESPONSE_PARAMETER.test(key));
  if (!responds || Reflect.getMetadata(RESPONSE_PASSTHROUGH_METADATA, type, name)) return [];
  const what =
    `${shownMethod(prototype, name)} has onTimeout: 'skip' and sends its response by @Res() or @Next(), ` +
    `so nobody would answer a request that is skipped.`;
  return [
    mistake(what, [
      'Write @Res({ passthrough: true }), and return what is to be sent.',
      'Give onTimeout a function that sends a response.',
      'Leave out onTimeout: the client gets a 409.',
    ]),
  ];
}

/** Node ends the process when nobody catches what a method throws later. */
function errorNobodyCatches(prototype: object, method: LockedMethod): readonly string[] {
  const role = roleWithoutCatch(prototype.constructor, method);
  if (!role) return [];
  const what =
    `${shownMethod(prototype, method.name)} is ${role}, whose errors Nest does not catch, ` +
    `so a lock that can't be acquired would end the process.`;
  return [mistake(what, ['Put @WithLock on another method, and call it from this one inside try/catch.'])];
}
