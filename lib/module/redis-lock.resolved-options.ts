import { durationMs } from '../clock/duration.js';
import { isWellFormed } from '../core/request/lock-key.js';
import {
  booleanOption,
  DEFAULT_LOCK_OPTIONS,
  resolveCallOptions,
  wrongValue,
  type ResolvedLockOptions,
} from '../core/request/lock-options.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { shown } from '../errors/messages.js';
import { plainOptions } from '../errors/plain-options.js';
import { unknownOption } from '../errors/unknown-option.js';
import type { LockExceptionFactory } from '../http/exception-factory.js';
import { resolveDurability } from './redis-lock.durability.js';
import type { RedisLockModuleOptions } from './redis-lock.options.js';
import { isIoredisClient, type RedisConnectionsOption } from '../redis/connection/connection-option.js';
import type { DurabilityTerms } from '../redis/durability/replica-acknowledgements.js';
import type { LockStore } from '../store/lock-store.js';

/** The options of a module, checked and complete. */
export interface ResolvedModuleOptions {
  readonly connection: RedisConnectionsOption;
  readonly store: LockStore | undefined;
  readonly keyPrefix: string;
  /** The options of calls that don't say otherwise. */
  readonly callDefaults: ResolvedLockOptions;
  readonly commandTimeoutMs: number;
  readonly shutdownGraceMs: number;
  readonly http: boolean;
  readonly exceptionFactory: LockExceptionFactory | undefined;
  readonly durability: DurabilityTerms | undefined;
}

/** The defaults of a module; `DEFAULT_LOCK_OPTIONS` has those of calls. */
export const DEFAULT_MODULE_OPTIONS = {
  connection: 'redis://127.0.0.1:6379',
  keyPrefix: 'lock:',
  commandTimeout: '1s',
  shutdownGrace: '10s',
  http: true,
  durability: 'none',
} as const satisfies RedisLockModuleOptions;

const OF_CALLS = ['wait', 'lease', 'watchdog', 'maxHold', 'warnAfter', 'maxWaiters', 'reentrant'] as const;

const KNOWN: readonly string[] = [
  ...['connection', 'store', 'keyPrefix', ...OF_CALLS, 'commandTimeout', 'shutdownGrace', 'durability', 'http'],
  ...['exceptionFactory', 'name', 'isGlobal'],
];

export function isModuleOption(name: string): boolean {
  return KNOWN.includes(name);
}

/**
 * Copies the options into a plain object, those of a class included.
 *
 * @throws LockOptionsError unless it is an object of options
 */
export function plainModuleOptions<Options extends RedisLockModuleOptions>(options: Options): Options {
  const isClient = typeof options === 'object' && options !== null && isIoredisClient(options);
  const isPlace = isClient || typeof options === 'string' || Array.isArray(options) || options instanceof URL;
  if (typeof options === 'object' && options !== null && !isPlace) return plainOptions(options, KNOWN);
  const given = isClient ? 'an ioredis client' : shown(options);
  const remedy = isPlace ? ' Say where Redis is by the option "connection": { connection: … }.' : '';
  throw new LockOptionsError(`RedisLockModule takes an object of options, not ${given}.${remedy}`);
}

/**
 * Checks the options of a module, and fills in the defaults.
 *
 * @throws LockOptionsError that names the option, the value and what is allowed
 */
export function resolveModuleOptions(given: RedisLockModuleOptions = {}): ResolvedModuleOptions {
  const options = plainModuleOptions(given);
  const unknown = Object.keys(options).find((name) => !KNOWN.includes(name));
  if (unknown) throw unknownOption(unknown, KNOWN);
  if (options.isGlobal !== undefined) booleanOption('isGlobal', options.isGlobal);

  const place = resolvePlace(options);
  const { exceptionFactory, durability = DEFAULT_MODULE_OPTIONS.durability } = options;
  if (exceptionFactory !== undefined && typeof exceptionFactory !== 'function')
    throw wrongValue('exceptionFactory', exceptionFactory, 'a function that returns an HttpException or undefined');
  const {
    commandTimeout = DEFAULT_MODULE_OPTIONS.commandTimeout,
    shutdownGrace = DEFAULT_MODULE_OPTIONS.shutdownGrace,
  } = options;
  const commandTimeoutMs = durationMs('commandTimeout', commandTimeout, { min: 10, ofTimer: true });
  return Object.freeze({
    ...place,
    callDefaults: Object.freeze(resolveCallOptions(callOptionsIn(options), DEFAULT_LOCK_OPTIONS)),
    commandTimeoutMs,
    shutdownGraceMs: durationMs('shutdownGrace', shutdownGrace, { min: 0 }),
    http: booleanOption('http', options.http === undefined ? DEFAULT_MODULE_OPTIONS.http : options.http),
    exceptionFactory,
    durability: resolveDurability(durability, place.store, commandTimeoutMs),
  });
}

const callOptionsIn = (options: RedisLockModuleOptions): Pick<RedisLockModuleOptions, (typeof OF_CALLS)[number]> =>
  Object.fromEntries(OF_CALLS.map((name) => [name, options[name]]));

/** Resolves where locks live. */
function resolvePlace(
  options: RedisLockModuleOptions,
): Pick<ResolvedModuleOptions, 'connection' | 'store' | 'keyPrefix'> {
  refuseMissingSetting(options);
  const {
    connection = DEFAULT_MODULE_OPTIONS.connection,
    store,
    keyPrefix = DEFAULT_MODULE_OPTIONS.keyPrefix,
  } = options;
  if (options.connection !== undefined && store !== undefined)
    throw new LockOptionsError('Give either "connection" or "store", not both: a store has its own connection.');
  if (store !== undefined && typeof store?.acquire !== 'function')
    throw wrongValue('store', store, 'a LockStore, e.g. new MemoryLockStore()');
  if (typeof keyPrefix !== 'string' || !isWellFormed(keyPrefix)) throw wrongValue('keyPrefix', keyPrefix, 'a string');
  return { connection, store, keyPrefix };
}

/**
 * Refuses options that are present but undefined. A missing setting must not become the server on this machine, or the
 * keys of another app: only leaving the option out means the default.
 */
function refuseMissingSetting(options: RedisLockModuleOptions): void {
  if ('keyPrefix' in options && options.keyPrefix === undefined)
    throw new LockOptionsError(
      '"keyPrefix" is undefined: a setting is missing. ' +
        `Set it, or leave the option out for "${DEFAULT_MODULE_OPTIONS.keyPrefix}".`,
    );
  if (options.connection !== undefined || options.store !== undefined) return;
  const name = ['connection', 'store'].find((option) => option in options);
  if (name === undefined) return;
  throw new LockOptionsError(
    `"${name}" is undefined: a setting is missing. Set it, e.g. "${DEFAULT_MODULE_OPTIONS.connection}", ` +
      'or leave the option out for that server.',
  );
}
