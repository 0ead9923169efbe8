import { withCallSite } from '../../core/request/call-site.js';
import {
  DEFAULT_LOCK_OPTIONS,
  LONGEST_LABEL,
  LOCK_OPTIONS,
  resolveCallOptions,
  oneOf,
  wrongValue,
  type WithLockOptions,
} from '../../core/request/lock-options.js';
import { plainOptions } from '../../errors/plain-options.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { shown } from '../../errors/messages.js';
import { checkedModuleName, DEFAULT_MODULE } from '../../service/lock.tokens.js';
import type { TimeoutFallback } from './timeout-types.js';

export interface WithLockDecoratorOptions<
  Word = 'throw' | 'skip',
  Result = unknown,
  Asked extends readonly unknown[] = readonly unknown[],
> extends WithLockOptions {
  /** The `name` of the `RedisLockModule` to use. @default 'default' */
  readonly module?: string;
  /**
   * What to do when the key stays held. `'throw'`: reject with `LockTimeoutError`; `'skip'`: return `undefined`; a
   * function: return what it returns. The method's result must allow for it: `T | undefined` for `'skip'`. Covers this
   * lock's own time-out only, never an error from inside the method.
   * @default 'throw'
   */
  readonly onTimeout?: Word | TimeoutFallback<Result, Asked> | undefined;
  /**
   * How long the lock is held. `'call'`: until what the method returns is done. `'request'`, on HTTP handlers: from
   * before the pipes until the response has been sent, or the client has gone and the handler has ended.
   * @default 'call'
   */
  readonly scope?: 'call' | 'request' | undefined;
}

/** The options of an HTTP handler that holds its lock until the response has been sent. */
export interface RequestLockOptions extends WithLockDecoratorOptions {
  readonly scope: 'request';
}

/** The options of `@WithLock`, checked. The defaults of the module complete `lockOptions` at the call. */
export interface ResolvedDecoratorOptions {
  readonly module: string;
  readonly onTimeout: NonNullable<WithLockDecoratorOptions['onTimeout']>;
  readonly lockOptions: WithLockOptions;
}

const OF_DECORATOR = ['module', 'onTimeout', 'scope'];
const OPTIONS = [...LOCK_OPTIONS, ...OF_DECORATOR];

const labelFor = (method: string): string => method.slice(0, LONGEST_LABEL).replace(/\p{Cs}/gu, '');

/** Returns the templates of a decorator's key, as they are written there; undefined when a function makes the key. */
const templateOf = (key: unknown): string | undefined =>
  [key]
    .flat()
    .filter((one) => typeof one === 'string')
    .join(', ') || undefined;

/**
 * Checks the options of a decorator.
 *
 * @throws LockOptionsError for an unknown option or a bad value, naming the method
 */
export function resolveDecoratorOptions(
  method: string,
  key: unknown,
  options: WithLockDecoratorOptions,
): ResolvedDecoratorOptions {
  try {
    return checkedOptions(method, key, options);
  } catch (error) {
    if (!(error instanceof LockOptionsError)) throw error;
    throw new LockOptionsError(`@WithLock on ${method}(): ${error.message}`);
  }
}

function checkedOptions(method: string, key: unknown, given: WithLockDecoratorOptions): ResolvedDecoratorOptions {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new LockOptionsError(`The options of @WithLock must be an object, not ${shown(given)}.`);
  }
  const options = plainOptions(given, OPTIONS);
  const { module, onTimeout = 'throw', scope = 'call', ...rest } = options;
  if (typeof onTimeout !== 'function' && onTimeout !== 'throw' && onTimeout !== 'skip')
    throw wrongValue('onTimeout', onTimeout, '"throw", "skip" or a function');
  const label = rest.label === undefined ? labelFor(method) : rest.label;
  const lockOptions: WithLockOptions = Object.freeze(
    withCallSite({ ...rest, label }, { method, template: templateOf(key) }),
  );
  // Only a check: `LockService` resolves them with the defaults of its module, once for this frozen object.
  resolveCallOptions(lockOptions, DEFAULT_LOCK_OPTIONS, OF_DECORATOR);
  oneOf('scope', scope, ['call', 'request']);
  return { module: 'module' in options ? checkedModuleName('module', module) : DEFAULT_MODULE, onTimeout, lockOptions };
}
