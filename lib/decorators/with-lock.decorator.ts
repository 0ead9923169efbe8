import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import type { Lock } from '../core/lock.js';
import type { LockKey } from '../core/lock-key.js';
import { DEFAULT_TERMS, lockTerms, wrongValue, type WithLockOptions } from '../core/lock-options.js';
import { LockNotWiredError } from '../errors/lock-not-wired.error.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { LockTimeoutError } from '../errors/lock-timeout.error.js';
import { shown } from '../errors/shown.js';
import { reported } from '../http/http-request.js';
import type { LockService } from '../lock.service.js';
import { checkedModuleName, lockServiceSlot, lockServiceToken } from '../lock.tokens.js';
import { currentLockParameters } from './current-lock.decorator.js';
import { keyResolver } from './key-resolver.js';
import { noteLockedMethod } from './locked-methods.js';
import type { Fills } from './template-types.js';
import { wrapMethod } from './wrap-method.js';

/** What an `onTimeout` function gets to know. */
export interface LockTimeoutContext {
  readonly error: LockTimeoutError;
  /** The arguments of the call that did not run. */
  readonly args: readonly unknown[];
}

export interface WithLockDecoratorOptions extends WithLockOptions {
  /** The `name` of the `RedisLockModule` to use. @default 'default' */
  readonly module?: string;
  /**
   * What to do when the key stays held. `'throw'`: reject with `LockTimeoutError`; `'skip'`: return `undefined`; a function:
   * return what it returns. Covers this lock's own time-out only, never an error from inside the method.
   * @default 'throw'
   */
  readonly onTimeout?: 'throw' | 'skip' | ((context: LockTimeoutContext) => unknown);
}

type AsyncMethod = (...args: never[]) => Promise<unknown>;

/** Holds for a method whose parameters begin with `Args`. */
type Takes<Args extends unknown[], M extends AsyncMethod> = Parameters<M> extends [...Args, ...unknown[]]
  ? unknown
  : { 'the key function asks for other parameters than the method has': Parameters<M> };

/** Decorates an async method whose parameters begin with `Args`, and can fill what `Key` names by position. */
export type WithLockDecorator<Args extends unknown[], Key = unknown> = <M extends AsyncMethod>(
  prototype: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<M> & Takes<Args, M> & Fills<Key, Parameters<M>>,
) => void;

/**
 * Runs the method while holding a lock on the key. If the lock can't be had, the method does not run.
 *
 * The key is a template filled from the arguments: by name (`account:<userId>`), by path (`order:<dto.items.0.sku>`),
 * by position (`account:<0>`), several of them, or a function of the arguments.
 *
 * @throws LockOptionsError when the class is defined, for a bad template or option
 * @throws LockTimeoutError, LockUnavailableError, LockLostError, LockKeyError, LockNotWiredError from the decorated method
 */
export function WithLock<const Key extends string | readonly string[]>(key: Key, options?: WithLockDecoratorOptions): WithLockDecorator<[], Key>;
export function WithLock<Args extends unknown[]>(key: (...args: Args) => LockKey, options?: WithLockDecoratorOptions): WithLockDecorator<Args>;
export function WithLock(key: unknown, options: WithLockDecoratorOptions = {}): WithLockDecorator<[]> {
  const { module, onTimeout, lockOptions } = checkedOptions(options);
  return (prototype, name, descriptor) => {
    const method = checkedMethod(prototype, name, descriptor);
    const site = `${prototype.constructor.name}.${String(name)}`;
    const slot = lockServiceSlot(module);
    const keyOf = keyResolver(key, prototype, name, site);
    const lockParameters = currentLockParameters(prototype, name);
    Inject(lockServiceToken(module))(prototype, slot);
    noteLockedMethod(prototype, { name, module });

    const check = (result: unknown) => checkedResult(result, site);
    const locksOf = (self: object): LockService => {
      const locks = (self as Partial<Record<symbol, LockService>> | undefined)?.[slot];
      if (!locks) throw reported(new LockNotWiredError(site, module));
      return locks;
    };
    // Not an async function: a lock costs little enough that one more promise shows.
    const call = (body: Method, self: object, args: unknown[]): Promise<unknown> => {
      try {
        const work = (lock: Lock): unknown => {
          const result = Reflect.apply(body, self, withCurrentLock(args, lockParameters, lock));
          return Promise.resolve(result).then(check);
        };
        return locksOf(self).withLock(reportedKey(keyOf, args), work, lockOptions);
      } catch (error) {
        return Promise.reject(error);
      }
    };
    const callOr = async (body: Method, self: object, args: unknown[]): Promise<unknown> => {
      let began = false;
      const noted: Method = (...received) => {
        began = true;
        return Reflect.apply(body, self, received);
      };
      try {
        return await call(noted, self, args);
      } catch (error) {
        // A time-out from inside the method is the method's own.
        if (began || !(error instanceof LockTimeoutError)) throw error;
        return typeof onTimeout === 'function' ? onTimeout({ error, args }) : undefined;
      }
    };
    descriptor.value = wrapMethod(method, onTimeout === 'throw' ? call : callOr) as unknown as typeof descriptor.value;
  };
}

function checkedOptions(options: WithLockDecoratorOptions) {
  if (typeof options !== 'object' || options === null) throw new LockOptionsError(`The options of @WithLock must be an object, not ${shown(options)}.`);
  const { module, onTimeout = 'throw', ...rest } = options;
  if (typeof onTimeout !== 'function' && onTimeout !== 'throw' && onTimeout !== 'skip') throw wrongValue('onTimeout', onTimeout, '"throw", "skip" or a function');
  const lockOptions: WithLockOptions = Object.freeze(rest);
  lockTerms(lockOptions, DEFAULT_TERMS, ['module', 'onTimeout']);
  return { module: checkedModuleName('module', module), onTimeout, lockOptions };
}

function reportedKey(keyOf: (args: unknown[]) => LockKey, args: unknown[]): LockKey {
  try {
    return keyOf(args);
  } catch (error) {
    throw reported(error);
  }
}

type Method = (...args: unknown[]) => unknown;

function checkedMethod(prototype: object, name: string | symbol, descriptor: PropertyDescriptor | undefined): Method {
  const where = typeof prototype === 'function' ? `static ${prototype.name}` : prototype.constructor.name;
  if (typeof descriptor?.value !== 'function') throw new LockOptionsError(`@WithLock stands on ${where}.${String(name)}, which is not a method. Put it on an async method.`);
  if (typeof prototype === 'function') {
    throw new LockOptionsError(`@WithLock stands on ${where}.${String(name)}(). Nest injects nothing into a class itself: make it a method of an injectable, or use LockService.`);
  }
  const returns: unknown = Reflect.getMetadata('design:returntype', prototype, name);
  if (returns !== undefined && returns !== Promise && returns !== Object) throw notAPromise(`${where}.${String(name)}`);
  return descriptor.value as Method;
}

/** A result that goes on working after the method has returned would go on without the lock. */
function checkedResult(result: unknown, site: string): unknown {
  if (typeof result !== 'object' || result === null) return result;
  if (Symbol.asyncIterator in result && 'next' in result) throw notAPromise(site);
  if ('subscribe' in result && typeof result.subscribe === 'function') throw notAPromise(site);
  return result;
}

function notAPromise(site: string): LockOptionsError {
  return new LockOptionsError(
    `${site}() does not return a promise, so @WithLock can't tell when its work ends. Make it async; turn an Observable into a promise with lastValueFrom().`,
  );
}

function withCurrentLock(args: unknown[], indexes: readonly number[], lock: Lock): unknown[] {
  if (indexes.length === 0) return args;
  const copy = [...args];
  for (const index of indexes) copy[index] = lock;
  return copy;
}
