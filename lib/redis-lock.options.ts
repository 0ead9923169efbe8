import { durationMs, type Duration } from './clock/duration.js';
import {
  booleanOption,
  DEFAULT_LOCK_OPTIONS,
  resolveCallOptions,
  wrongValue,
  type ResolvedLockOptions,
} from './core/request/lock-options.js';
import type { LockExceptionFactory } from './http/exception-factory.js';
import { isWellFormed } from './core/request/lock-key.js';
import { plainOptions } from './errors/plain-options.js';
import { LockOptionsError } from './errors/lock-options.error.js';
import { shown } from './errors/messages.js';
import { unknownOption } from './errors/unknown-option.js';
import type { DurabilityTerms } from './redis/durability/durable-lock.store.js';
import type { RedisConnectionsOption } from './redis/connection/connection-option.js';
import type { LockStore } from './store/lock-store.js';

/** Options of a module, besides its name. */
export interface RedisLockOptions {
  /**
   * Says where Redis is: a URL (`redis://`, `rediss://`; a string or a `URL`), ioredis options (Sentinel included), or
   * an ioredis client (`Redis` or `Cluster`) of the app, which is borrowed: never closed, never reconfigured. Or an
   * array of 3, 5 or 7 of these, independent masters: a majority of them grants a lock (Redlock). A master that was
   * started less than the longest lease ago does not count, because it may have forgotten locks. `undefined`, an
   * unknown option of ioredis and options that name no server are refused.
   * @default 'redis://127.0.0.1:6379' when it is left out
   */
  readonly connection?: RedisConnectionsOption;
  /** Uses your own store instead of `connection`, e.g. `new MemoryLockStore()`. */
  readonly store?: LockStore;
  /** Precedes each key in Redis: `account:42` is stored as `lock:account:42`. @default 'lock:' */
  readonly keyPrefix?: string;
  /** How long a call waits for its key if it sets no `wait`. `0`: one try. @default '10s' */
  readonly wait?: Duration;
  /** How long Redis keeps a lock if this process dies. @default '30s' (smallest '100ms') */
  readonly lease?: Duration;
  /** Whether the watchdog renews leases every lease/3 while the work runs. @default true */
  readonly watchdog?: boolean;
  /**
   * How long the watchdog renews a lock at most, so that a stuck method can't hold a key for ever.
   * @default no limit
   */
  readonly maxHold?: Duration;
  /** Waiters allowed for a key in this process; one more gets `LockTimeoutError` at once. @default no limit */
  readonly maxWaiters?: number;
  /**
   * Whether a call nested in a holder's async context enters at once, if it sets no `reentrant`. `false`: it throws,
   * and so does work that a queue in the process has started in that context.
   * @default true
   */
  readonly reentrant?: boolean;
  /** Limits each Redis command, and each promise of this library that waits for one. @default '1s' */
  readonly commandTimeout?: Duration;
  /**
   * How long held locks have when the app shuts down, counted from the beginning of the shutdown, HTTP handlers
   * included. Then their signals abort with the reason `shutdown`. Each lock is released when its work ends, or at the
   * latest before `app.close()` resolves.
   * @default '10s'
   */
  readonly shutdownGrace?: Duration;
  /**
   * When a grant counts. `'none'`: when the master has it. `{ replicas, timeout }`: when that many replicas have it too
   * (`WAIT`), within `timeout` (default: half of `commandTimeout`); otherwise it is undone, and the call gets
   * `LockUnavailableError`. With `aof: true`: when the master and that many replicas (0 is allowed then) have it on
   * disk, in their append-only files (`WAITAOF`: Redis 7.2 or later, or Valkey). With `durability`, a server that was
   * started less than the longest lease ago grants nothing, because it may have forgotten locks.
   * @default 'none'
   */
  readonly durability?: 'none' | { readonly replicas: number; readonly timeout?: Duration; readonly aof?: boolean };
  /**
   * Whether lock errors get `Retry-After` and a log line, and a wait ends when its HTTP client has gone.
   * @default true
   */
  readonly http?: boolean;
  /**
   * Returns the exception to send to HTTP clients instead of a lock error of this module, for another status or body;
   * `undefined` keeps the default. It is called when the error becomes the response: your code still gets the
   * `LockError`. If `http` is false, it is called only in handlers with `LockInterceptor`.
   * @default none
   */
  readonly exceptionFactory?: LockExceptionFactory;
}

/** Tells several modules of one app apart. */
export interface RedisLockModuleExtras {
  /** `@InjectLocks('billing')` and `@WithLock(key, { module: 'billing' })` name it. @default 'default' */
  readonly name?: string;
  /** @default true */
  readonly isGlobal?: boolean;
}

export interface RedisLockModuleOptions extends RedisLockOptions, RedisLockModuleExtras {}

/** Creates the options, for `useClass` and `useExisting` of `forRootAsync`. */
export interface RedisLockOptionsFactory {
  createRedisLockOptions(): RedisLockOptions | Promise<RedisLockOptions>;
}

/** The options of a module, read and checked, with nothing left open. */
export interface ResolvedModuleOptions {
  readonly connection: RedisConnectionsOption;
  readonly store: LockStore | undefined;
  readonly keyPrefix: string;
  readonly terms: ResolvedLockOptions;
  readonly commandTimeoutMs: number;
  readonly shutdownGraceMs: number;
  readonly http: boolean;
  readonly exceptionFactory: LockExceptionFactory | undefined;
  readonly durability: DurabilityTerms | undefined;
}

const KNOWN: readonly string[] = [
  'connection', 'store', 'keyPrefix', 'wait', 'lease', 'watchdog', 'maxHold', 'maxWaiters', 'reentrant', 'commandTimeout', 'shutdownGrace', 'durability', 'http', 'exceptionFactory', 'name', 'isGlobal',
]; // prettier-ignore

export function isModuleOption(name: string): boolean {
  return KNOWN.includes(name);
}

/**
 * The options as a plain object, those of its class included.
 *
 * @throws LockOptionsError where it is no object of options
 */
export function moduleOptions<Options extends RedisLockModuleOptions>(options: Options): Options {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) return plainOptions(options, KNOWN);
  throw new LockOptionsError(`RedisLockModule takes an object of options, not ${shown(options)}.`);
}

/** @throws LockOptionsError naming the option, the value and what is allowed */
export function resolveModuleOptions(given: RedisLockModuleOptions = {}): ResolvedModuleOptions {
  const options = moduleOptions(given);
  const unknown = Object.keys(options).find((name) => !KNOWN.includes(name));
  if (unknown) throw unknownOption(unknown, KNOWN);

  const {
    connection,
    store,
    keyPrefix = 'lock:',
    commandTimeout = '1s',
    shutdownGrace = '10s',
    http = true,
    exceptionFactory,
  } = options;
  const { wait, lease, watchdog, maxHold, maxWaiters, reentrant } = options;
  if (options.isGlobal !== undefined) booleanOption('isGlobal', options.isGlobal);
  refuseMissingSetting(options);
  if (connection !== undefined && store !== undefined)
    throw new LockOptionsError('Give either "connection" or "store", not both: a store has its own connection.');
  if (store !== undefined && typeof store?.acquire !== 'function')
    throw wrongValue('store', store, 'a LockStore, e.g. new MemoryLockStore()');
  if (typeof keyPrefix !== 'string' || !isWellFormed(keyPrefix)) throw wrongValue('keyPrefix', keyPrefix, 'a string');
  if (exceptionFactory !== undefined && typeof exceptionFactory !== 'function')
    throw wrongValue('exceptionFactory', exceptionFactory, 'a function that returns an HttpException or undefined');
  const commandTimeoutMs = durationMs('commandTimeout', commandTimeout, { min: 10 });
  return Object.freeze({
    connection: connection === undefined ? 'redis://127.0.0.1:6379' : connection,
    store,
    keyPrefix,
    terms: Object.freeze(
      resolveCallOptions({ wait, lease, watchdog, maxHold, maxWaiters, reentrant }, DEFAULT_LOCK_OPTIONS),
    ),
    commandTimeoutMs,
    shutdownGraceMs: durationMs('shutdownGrace', shutdownGrace, { min: 0 }),
    http: booleanOption('http', http),
    exceptionFactory,
    durability: durabilityTerms(options, commandTimeoutMs),
  });
}

/**
 * A setting that is missing must not become the server on this machine, or the keys of another app: only leaving the
 * option out means that.
 */
function refuseMissingSetting(options: RedisLockModuleOptions): void {
  if ('keyPrefix' in options && options.keyPrefix === undefined)
    throw new LockOptionsError(
      '"keyPrefix" is undefined: a setting is missing. Set it, or leave the option out for "lock:".',
    );
  if (options.connection !== undefined || options.store !== undefined) return;
  const name = ['connection', 'store'].find((option) => option in options);
  if (name === undefined) return;
  throw new LockOptionsError(
    `"${name}" is undefined: a setting is missing. Set it, e.g. "redis://127.0.0.1:6379", or leave the option out for that server.`,
  );
}

function durabilityTerms(
  { durability: given = 'none', store }: RedisLockModuleOptions,
  commandTimeoutMs: number,
): DurabilityTerms | undefined {
  if (given === 'none') return undefined;
  if (store !== undefined)
    throw new LockOptionsError(
      '"durability" is about replicas of Redis: a "store" of your own has to see to it itself.',
    );
  if (typeof given !== 'object' || given === null)
    throw wrongValue('durability', given, '"none" or { replicas, timeout, aof }');
  const durability = plainOptions(given, []);
  const unknown = Object.keys(durability).find((name) => !['replicas', 'timeout', 'aof'].includes(name));
  if (unknown)
    throw unknownOption(`durability.${unknown}`, ['durability.replicas', 'durability.timeout', 'durability.aof']);
  const { replicas, timeout = commandTimeoutMs / 2 } = durability;
  const aof = booleanOption('durability.aof', durability.aof === undefined ? false : durability.aof);
  const least = aof ? 0 : 1;
  if (!Number.isSafeInteger(replicas) || replicas < least)
    throw wrongValue('durability.replicas', replicas, `a whole number of at least ${least}`);
  const timeoutMs = durationMs('durability.timeout', timeout, { min: 1 });
  if (timeoutMs >= commandTimeoutMs)
    throw wrongValue('durability.timeout', timeout, `shorter than "commandTimeout" (${commandTimeoutMs} ms)`);
  return Object.freeze({ replicas, timeoutMs, aof });
}
