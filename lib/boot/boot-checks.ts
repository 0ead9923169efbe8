import { INTERCEPTORS_METADATA, METHOD_METADATA } from '@nestjs/common/constants.js';
import { lockedMethods, lockOwners, type LockedMethod } from '../decorators/method/locked-methods.js';
import { currentLockMethods } from '../decorators/current-lock.decorator.js';
import { hiddenByClass, ownerOf, ownersOf } from '../decorators/instance/hidden-locks.js';
import { shownMethod } from '../decorators/method/method-name.js';
import { isRequestLock } from '../decorators/request/request-lock.interceptor.js';
import { callsSuper } from '../decorators/source/super-calls.js';
import { mistake } from '../errors/mistakes.js';
import { isGateway } from '../http/gateways.js';

/**
 * What would break a lock of this class.
 *
 * @param prototype of a class that Nest knows
 */
export function mistakesOf(prototype: object): readonly string[] {
  const methods = lockedMethods(prototype);
  const lost = hiddenByClass(prototype).map(({ mistake }) => mistake);
  const own = methods.filter(({ owner, name }) => owner === ownerOf(prototype, name));
  const bad = methods.filter((method) => isReached(prototype, method)).flatMap(({ mistakes }) => mistakes ?? []);
  const inherited = methods.flatMap((method) => calledBySuper(prototype, method));
  return [
    ...bad,
    ...lost,
    ...withoutLock(prototype),
    ...inherited,
    ...own.flatMap((method) => [
      ...wrongOrder(method),
      ...noRequest(prototype, method),
      ...uncaught(prototype, method),
    ]),
  ];
}

/** Whether a call comes to this method: itself, or by `super`. */
export function isReached(prototype: object, { owner, name }: LockedMethod): boolean {
  const first = ownerOf(prototype, name);
  return first === owner || !lockedMethods(prototype).some((method) => method.name === name && method.owner === first);
}

/** The lock of a request is taken by an interceptor of the handler, which an override is now. */
function calledBySuper(prototype: object, { owner: locked, name, scope }: LockedMethod): readonly string[] {
  if (scope === 'call' || ownerOf(prototype, name) === locked) return [];
  for (const owner of ownersOf(prototype, name)) {
    if (owner === locked) break;
    if (!callsSuper(owner, name)) return [];
  }
  return [
    mistake(
      `${shownMethod(prototype, name)} calls ${shownMethod(locked, name)} by super, whose lock with scope: 'request' is taken for the handler that it stands on only, so every call would be refused.`,
      [
        `Put @WithLock with scope: 'request' on ${shownMethod(prototype, name)}, and let both call a method without a lock.`,
      ],
    ),
  ];
}

/** `@CurrentLock()` is filled in by the `@WithLock` of the same method only. */
function withoutLock(prototype: object): readonly string[] {
  const reached = currentLockMethods(prototype).filter(({ owner, name }) => ownerOf(prototype, name) === owner);
  const unlocked = reached.filter(
    ({ owner, name }) => !lockedMethods(prototype).some((method) => method.owner === owner && method.name === name),
  );
  return unlocked.map(({ owner, name }) =>
    mistake(
      `${shownMethod(owner, name)} has a parameter with @CurrentLock(), but no @WithLock, so it would get no lock.`,
      [
        `Put @WithLock on ${shownMethod(owner, name)}.`,
        'For the lock that a caller holds, inject LockService and ask its current().',
      ],
    ),
  );
}

function wrongOrder({ owner, name, transaction }: LockedMethod): readonly string[] {
  const by = transaction();
  if (!by) return [];
  return [
    mistake(
      `${shownMethod(owner, name)} has @Transactional (of ${by}) above @WithLock, so its transaction would be committed when others have the lock already.`,
      ['Write @WithLock above @Transactional: the lock is then held until the transaction has ended.'],
    ),
  ];
}

function noRequest(prototype: object, { owner, name, scope, mistakes }: LockedMethod): readonly string[] {
  if (scope === 'call' || mistakes) return [];
  const handler = (owner as Record<string | symbol, object>)[name]!;
  const interceptors = (Reflect.getMetadata(INTERCEPTORS_METADATA, handler) ?? []) as unknown[];
  const isHandler = Reflect.hasMetadata(METHOD_METADATA, handler);
  if (isHandler && interceptors.some(isRequestLock)) return [];
  return [
    mistake(
      `${shownMethod(prototype, name)} has a lock with scope: 'request', but ${isHandler ? 'a decorator above has dropped its metadata' : 'is no HTTP handler'}, so every call would be refused.`,
      isHandler
        ? ['Write @WithLock above that decorator.']
        : [
            'Leave out the scope: the lock is then held for each call.',
            'Put it on the method that has @Get(), @Post() or the like.',
          ],
    ),
  ];
}

const GATEWAY_HOOKS: readonly (string | symbol)[] = ['afterInit', 'handleConnection', 'handleDisconnect'];

/** Nest catches nothing that these hooks throw later, so Node ends the process. */
function uncaught(prototype: object, { name }: LockedMethod): readonly string[] {
  if (!GATEWAY_HOOKS.includes(name) || !isGateway(prototype.constructor)) return [];
  const what = `${shownMethod(prototype, name)} is a hook of a gateway, whose errors Nest does not catch, so a lock that can't be had would end the process.`;
  return [mistake(what, ['Put @WithLock on another method, and call that in the hook, in a try.'])];
}

/**
 * What is to be told of classes with locked methods that are no part of the app now: what is wrong with a method; and
 * that Nest knows nothing at all of a class, not even a decorator, so that its calls are going to be refused.
 */
export function unknownToNest(known: Pick<ReadonlySet<object>, 'has'>): readonly string[] {
  const strangers = lockOwners().filter((owner) => !known.has(owner));
  const bad = strangers.flatMap((owner) =>
    lockedMethods(owner)
      .filter((method) => method.owner === owner)
      .flatMap(({ mistakes }) => mistakes ?? []),
  );
  const plain = strangers
    .filter((owner) => isPlain(owner.constructor))
    .map((owner) => {
      const methods = lockedMethods(owner)
        .map(({ name }) => shownMethod(owner, name))
        .join(', ');
      return mistake(
        `${methods} can't take a lock: Nest does not know the class ${owner.constructor.name}, so calls will be refused with LockNotWiredError.`,
        [
          `Make ${owner.constructor.name} a provider, and let Nest build it.`,
          'Use LockService.withLock() instead of the decorator.',
        ],
      );
    });
  return [...bad, ...plain];
}

/** What `@WithLock` and the compiler themselves put on a class. */
const OURS = ['self:properties_metadata', 'design:paramtypes'];

function isPlain(type: object): boolean {
  return Reflect.getMetadataKeys(type).every((key) => OURS.includes(key as string));
}
