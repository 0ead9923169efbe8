import type { Duration } from '../clock/duration.js';
import type { LockExceptionFactory } from '../http/exception-factory.js';
import type { RedisConnectionsOption } from '../redis/connection/connection-option.js';
import type { LockStore } from '../store/lock-store.js';

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
  readonly wait?: Duration | undefined;
  /** How long Redis keeps a lock if this process dies. @default '30s' (smallest '100ms') */
  readonly lease?: Duration | undefined;
  /** Whether the watchdog renews leases every lease/3 while the work runs. @default true */
  readonly watchdog?: boolean | undefined;
  /**
   * How long the watchdog renews a lock at most, so that a stuck method can't hold a key for ever.
   * @default no limit
   */
  readonly maxHold?: Duration | undefined;
  /**
   * Reports a lock that has been held for longer than this, if the call sets no `warnAfter`: a warning in the log, and
   * an
   * `overdue` event, once.
   * @default none
   */
  readonly warnAfter?: Duration | undefined;
  /** Waiters allowed for a key in this process; one more gets `LockTimeoutError` at once. @default no limit */
  readonly maxWaiters?: number | undefined;
  /**
   * Whether a call nested in a holder's async context enters at once, if it sets no `reentrant`. `false`: it throws,
   * and so does work that a queue in the process has started in that context.
   * @default true
   */
  readonly reentrant?: boolean | undefined;
  /** Limits each Redis command, and each promise of this library that waits for one. @default '1s' */
  readonly commandTimeout?: Duration | undefined;
  /**
   * How long held locks have when the app shuts down, counted from the beginning of the shutdown, HTTP handlers
   * included. Then their signals abort with the reason `shutdown`. Each lock is released when its work ends, or at the
   * latest before `app.close()` resolves.
   * @default '10s'
   */
  readonly shutdownGrace?: Duration | undefined;
  /**
   * When a grant counts. `'none'`: when the master has it. `{ replicas, timeout }`: when that many replicas have it too
   * (`WAIT`), within `timeout` (default: half of `commandTimeout`); otherwise it is undone, and the call gets
   * `LockUnavailableError`. With `aof: true`: when the master and that many replicas (0 is allowed then) have it on
   * disk, in their append-only files (`WAITAOF`: Redis 7.2 or later, or Valkey). With `durability`, a server that was
   * started less than the longest lease ago grants nothing, because it may have forgotten locks.
   * @default 'none'
   */
  readonly durability?:
    | 'none'
    | { readonly replicas: number; readonly timeout?: Duration | undefined; readonly aof?: boolean | undefined }
    | undefined;
  /**
   * Whether lock errors get `Retry-After` and a log line, and a wait ends when its HTTP client has gone.
   * @default true
   */
  readonly http?: boolean | undefined;
  /**
   * Returns the exception to send to HTTP clients instead of a lock error of this module, for another status or body;
   * `undefined` keeps the default. It is called when the error becomes the response: your code still gets the
   * `LockError`. If `http` is false, it is called only in handlers with `LockInterceptor`.
   * @default none
   */
  readonly exceptionFactory?: LockExceptionFactory | undefined;
}

/** Tells several modules of one app apart. */
export interface RedisLockModuleExtras {
  /** `@InjectLocks('billing')` and `@WithLock(key, { module: 'billing' })` name it. @default 'default' */
  readonly name?: string;
  /** @default true */
  readonly isGlobal?: boolean | undefined;
}

export interface RedisLockModuleOptions extends RedisLockOptions, RedisLockModuleExtras {}

/** Creates the options, for `useClass` and `useExisting` of `forRootAsync`. */
export interface RedisLockOptionsFactory {
  createRedisLockOptions(): RedisLockOptions | Promise<RedisLockOptions>;
}
