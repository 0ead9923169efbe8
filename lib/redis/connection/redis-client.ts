import { Redis, type Cluster, type RedisOptions } from 'ioredis';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { shown } from '../../errors/messages.js';
import { defaultsFor, growingPatience, LONGEST_CONNECT_MS, OWN, prepared } from './client-defaults.js';
import { connectionOption, isIoredisClient, refuseIoredis4 } from './connection-option.js';
import { optionsOfUrl } from './ioredis-options.js';

export interface RedisClient {
  readonly redis: Redis;
  /** The app's own client: never closed, never reconfigured. */
  readonly borrowed: boolean;
  /** The time-out of a connection that is being made, where the app sets one, in ms. */
  readonly connectTimeoutMs: number | undefined;
  /** How long a Sentinel may take to reply, where the app sets it, in ms. */
  readonly sentinelTimeoutMs: number | undefined;
}

/**
 * Whether it is the app's client of a Redis Cluster.
 *
 * @throws LockOptionsError when it has a key prefix of its own, or is one of ioredis 4
 */
export function isCluster(connection: unknown): connection is Cluster {
  const client = connection as Partial<Cluster> | null;
  if (typeof client !== 'object' || client === null || client.isCluster !== true || typeof client.nodes !== 'function')
    return false;
  withoutPrefix(refuseIoredis4(client as Cluster, 'connection'));
  return true;
}

/**
 * Makes the client of one Redis, or borrows the one that the app gave.
 *
 * @param option how the option is named in a message
 * @throws LockOptionsError when it is none of the things a connection to one Redis can be
 */
export function redisClient(connection: unknown, commandTimeoutMs: number, option = 'connection'): RedisClient {
  const checked = connectionOption(connection, option);
  // A mock of the package may have the class only as its default export.
  if (typeof (Redis as unknown) !== 'function') throw mocked();
  if (typeof checked === 'string') {
    const url = new URL(checked);
    const more = optionsOfUrl(url, option);
    url.search = '';
    return ownClient(new Redis(url.href, { ...defaultsFor(commandTimeoutMs), ...more, ...OWN }), more, option);
  }
  if (!isIoredisClient(checked)) {
    return ownClient(new Redis({ ...defaultsFor(commandTimeoutMs), ...checked, ...OWN }), checked, option);
  }
  if (checked.isCluster)
    throw new LockOptionsError('A Redis Cluster client can only be the whole "connection", not one of several.');
  return borrowedClient(withoutMonitor(withoutPrefix(checked as Redis, option), option));
}

function mocked(): LockOptionsError {
  return new LockOptionsError(
    'A test mocks the package "ioredis", and locks can\'t live in a mock. Let the test replace the LockService, too: ' +
      '.overrideProvider(LockService).useClass(TestLockService).',
  );
}

/** What there is to know of a client that the app lends. */
export function borrowedClient(redis: Redis): RedisClient {
  const { connectTimeout, sentinelCommandTimeout } = redis.options;
  return { redis, borrowed: true, connectTimeoutMs: connectTimeout, sentinelTimeoutMs: sentinelCommandTimeout };
}

function ownClient(redis: Redis, given: RedisOptions, option: string): RedisClient {
  const { connectTimeout, sentinelCommandTimeout: sentinelTimeoutMs } = given;
  if (!('connector' in redis) || !(redis.options as unknown)) throw mocked();
  withoutMonitor(withoutPrefix(redis, option), option);
  if (connectTimeout === undefined) growingPatience(redis, LONGEST_CONNECT_MS);
  return {
    redis: prepared(redis, sentinelTimeoutMs),
    borrowed: false,
    connectTimeoutMs: connectTimeout,
    sentinelTimeoutMs,
  };
}

function withoutPrefix<Client extends Redis | Cluster>(client: Client, option = 'connection'): Client {
  const { keyPrefix } = client.options;
  if (!keyPrefix) return client;
  throw new LockOptionsError(
    `"${option}.keyPrefix" is ${shown(keyPrefix)}, so lock keys would not live where other tools look for them. ` +
      'Use the module\'s own "keyPrefix"; for a client of yours give a duplicate without it.',
  );
}

function withoutMonitor(redis: Redis, option: string): Redis {
  if (!redis.options.monitor) return redis;
  throw new LockOptionsError(
    `"${option}.monitor" is true, so the connection would only listen to the commands of others. Leave it out.`,
  );
}
