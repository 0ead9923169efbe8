import { INTERCEPTORS_METADATA, METHOD_METADATA } from '@nestjs/common/constants.js';
import { callsSuper, methodSource } from './decorators/class-source.js';
import { lockedMethods, lockOwners, type LockedMethod } from './decorators/locked-methods.js';
import { isRequestLock } from './decorators/request-lock.js';
import { mistake } from './errors/mistakes.js';

/**
 * What would break a lock of this class.
 *
 * @param prototype of a class that Nest knows
 */
export function mistakesOf(prototype: object): readonly string[] {
  const methods = lockedMethods(prototype);
  const named = (name: string | symbol) => methods.filter((method) => method.name === name);
  const lost = [...new Set(methods.map(({ name }) => name))].flatMap((name) => lostDecorator(prototype, name, named(name)));
  const own = methods.filter(({ owner, name }) => owner === ownerOf(prototype, name));
  const bad = methods.filter((method) => isReached(prototype, method)).flatMap(({ mistakes }) => mistakes ?? []);
  const inherited = methods.flatMap((method) => calledBySuper(prototype, method));
  return [...bad, ...lost, ...inherited, ...own.flatMap((method) => [...wrongOrder(method), ...noRequest(prototype, method)])];
}

/** `Jobs.run()` */
export function nameOf(prototype: object, method: string | symbol): string {
  return `${prototype.constructor.name}.${String(method)}()`;
}

/** Where a method that is called on an object with this prototype is found. */
export function ownerOf(prototype: object | null, name: string | symbol): object | undefined {
  let owner = prototype;
  while (owner && !Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner) as object | null;
  return owner ?? undefined;
}

/** Whether a call comes to this method: itself, or by `super`. */
export function isReached(prototype: object, { owner, name }: LockedMethod): boolean {
  const first = ownerOf(prototype, name);
  return first === owner || !lockedMethods(prototype).some((method) => method.name === name && method.owner === first);
}

/** The method that a call comes to first, and those above it, which it may call by `super`. */
function* ownersOf(prototype: object, name: string | symbol): Generator<object> {
  for (let owner = ownerOf(prototype, name); owner; owner = ownerOf(Object.getPrototypeOf(owner) as object | null, name)) yield owner;
}

/** An override hides the lock of the method it overrides, unless it has one itself or calls that method. */
function lostDecorator(prototype: object, name: string | symbol, locked: readonly LockedMethod[]): readonly string[] {
  for (const owner of ownersOf(prototype, name)) {
    if (locked.some((method) => method.owner === owner)) return [];
    const source = methodSource(owner, name);
    // Not in the class: somebody has put it there, such as a test with a spy.
    if (!source) return [];
    if (callsSuper(source, name)) continue;
    return [
      mistake(`${nameOf(owner, name)} overrides ${nameOf(locked[0]!.owner, name)}, which has @WithLock, and would run without the lock.`, [
        `Put @WithLock on ${nameOf(owner, name)} too.`,
        ...(locked.some(({ scope }) => scope === 'request') ? [] : [`Call super.${String(name)}() in it.`]),
        'If it needs no lock, give it another name.',
      ]),
    ];
  }
  return [];
}

/** The lock of a request is taken by an interceptor of the handler, which an override is now. */
function calledBySuper(prototype: object, { owner: locked, name, scope }: LockedMethod): readonly string[] {
  if (scope === 'call' || ownerOf(prototype, name) === locked) return [];
  for (const owner of ownersOf(prototype, name)) {
    if (owner === locked) break;
    const source = methodSource(owner, name);
    if (!source || !callsSuper(source, name)) return [];
  }
  return [
    mistake(`${nameOf(prototype, name)} calls ${nameOf(locked, name)} by super, whose lock with scope: 'request' is taken for the handler that it stands on only, so every call would be refused.`, [
      `Put @WithLock with scope: 'request' on ${nameOf(prototype, name)}, and let both call a method without a lock.`,
    ]),
  ];
}

function wrongOrder({ owner, name, transaction }: LockedMethod): readonly string[] {
  const by = transaction();
  if (!by) return [];
  return [
    mistake(`${nameOf(owner, name)} has @Transactional (of ${by}) above @WithLock, so its transaction would be committed when others have the lock already.`, [
      'Write @WithLock above @Transactional: the lock is then held until the transaction has ended.',
    ]),
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
      `${nameOf(prototype, name)} has a lock with scope: 'request', but ${isHandler ? 'a decorator above has dropped its metadata' : 'is no HTTP handler'}, so every call would be refused.`,
      isHandler ? ['Write @WithLock above that decorator.'] : ['Leave out the scope: the lock is then held for each call.', 'Put it on the method that has @Get(), @Post() or the like.'],
    ),
  ];
}

/**
 * What is to be told of classes with locked methods that are no part of the app now: what is wrong with a method; and that Nest knows nothing at all
 * of a class, not even a decorator, so that its calls are going to be refused.
 */
export function outOfReach(known: ReadonlySet<object>): readonly string[] {
  const strangers = lockOwners().filter((owner) => !known.has(owner));
  const bad = strangers.flatMap((owner) => lockedMethods(owner).filter((method) => method.owner === owner).flatMap(({ mistakes }) => mistakes ?? []));
  const plain = strangers
    .filter((owner) => isPlain(owner.constructor))
    .map((owner) => {
      const methods = lockedMethods(owner).map(({ name }) => nameOf(owner, name)).join(', ');
      return mistake(`${methods} can't take a lock: Nest does not know the class ${owner.constructor.name}, so calls will be refused with LockNotWiredError.`, [
        `Make ${owner.constructor.name} a provider, and let Nest build it.`,
        'Use LockService.withLock() instead of the decorator.',
      ]);
    });
  return [...bad, ...plain];
}

/** What `@WithLock` and the compiler themselves put on a class. */
const OURS = ['self:properties_metadata', 'design:paramtypes'];

function isPlain(type: object): boolean {
  return Reflect.getMetadataKeys(type).every((key) => OURS.includes(key as string));
}
