import { Redis, type Cluster, type RedisOptions } from 'ioredis';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { shown } from '../errors/shown.js';
import { saidBy } from './trouble.js';

/** Where Redis is: a URL, ioredis options (Sentinel included), or a client the app has already. */
export type RedisConnectionOption = string | RedisOptions | Redis | Cluster;

export interface RedisClient {
  readonly redis: Redis;
  /** The app's own client: never closed, never reconfigured. */
  readonly borrowed: boolean;
}

/** What our own connection must do whatever the app says: fail fast. Waiting and sending again is `RedisConnection`'s own. */
const OWN = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
} as const satisfies RedisOptions;

/**
 * Whether it is the app's client of a Redis Cluster.
 *
 * @throws LockOptionsError when it has a key prefix of its own
 */
export function isCluster(connection: unknown): connection is Cluster {
  const client = connection as Partial<Cluster> | null;
  if (typeof client !== 'object' || client === null || client.isCluster !== true || typeof client.nodes !== 'function') return false;
  withoutPrefix(client as Cluster);
  return true;
}

/** @throws LockOptionsError when it is none of the things a connection to one Redis can be */
export function redisClient(connection: unknown, commandTimeoutMs: number): RedisClient {
  if (isClient(connection)) return { redis: withoutPrefix(connection), borrowed: true };
  const defaults = defaultsFor(commandTimeoutMs);
  if (typeof connection === 'string') {
    const redis = withoutPrefix(new Redis(checkedUrl(connection), { ...defaults, ...OWN }));
    // What stands behind "?" in a URL beats the options.
    Object.assign(redis.options, OWN);
    return { redis, borrowed: false };
  }
  if (isPlainObject(connection)) {
    return { redis: withoutPrefix(new Redis({ ...defaults, ...connection, ...OWN })), borrowed: false };
  }
  throw new LockOptionsError(`"connection" must be a redis:// or rediss:// URL, ioredis options, or an ioredis client, not ${shown(connection)}.`);
}

/** A connection of our own beside the client's, to the same server, for a subscription. */
export function subscriberOf(client: Redis, commandTimeoutMs: number, more: RedisOptions = {}): Redis {
  return client.duplicate({
    ...defaultsFor(commandTimeoutMs, client),
    ...OWN,
    autoResubscribe: false,
    // It is silent for hours; but when it stays so while a command is under way, it is dead: the client connects anew.
    socketTimeout: commandTimeoutMs,
    ...more,
  });
}

/** Another connection for commands of our own, to the same server. */
export function besides({ redis }: RedisClient, commandTimeoutMs: number): RedisClient {
  return { redis: redis.duplicate({ ...defaultsFor(commandTimeoutMs, redis), ...OWN }), borrowed: false };
}

function defaultsFor(commandTimeoutMs: number, client?: Redis): RedisOptions {
  const patientMs = Math.max(commandTimeoutMs, 1000);
  return {
    connectionName: 'nest-redis-lock',
    connectTimeout: patientMs,
    // A Sentinel that takes the connection and says nothing: ask the next one. The connecting counts, too.
    sentinelCommandTimeout: client?.options.sentinelCommandTimeout ?? patientMs,
    // How soon to look again whether a server that loads its data is ready.
    maxLoadingRetryTime: 200,
    // How long a timer of ioredis keeps the process alive after a disconnect while Redis is away.
    disconnectTimeout: 100,
    // A master that became a replica: look for the new one.
    reconnectOnError: (error) => saidBy(error).startsWith('READONLY'),
    failoverDetector: true,
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 10), 1000) * (0.5 + Math.random() / 2),
  };
}

function withoutPrefix<Client extends Redis | Cluster>(client: Client): Client {
  const { keyPrefix } = client.options;
  if (!keyPrefix) return client;
  throw new LockOptionsError(
    `"connection.keyPrefix" is ${shown(keyPrefix)}, so lock keys would not live where other tools look for them. ` +
      'Use the module\'s own "keyPrefix"; for a client of yours give a duplicate without it.',
  );
}

function checkedUrl(url: string): string {
  if (/^rediss?:\/\/./.test(url) && URL.canParse(url)) return url;
  // The URL itself can hold a password.
  throw new LockOptionsError('"connection" is a string, but not a URL that starts with redis:// or rediss://, e.g. "redis://127.0.0.1:6379".');
}

function isClient(value: unknown): value is Redis {
  const client = value as Partial<Redis> | Partial<Cluster> | null;
  if (typeof client !== 'object' || client === null || typeof client.evalsha !== 'function') return false;
  if (!('isCluster' in client) || !client.isCluster) return true;
  throw new LockOptionsError('A Redis Cluster client can only be the whole "connection", not one of several.');
}

function isPlainObject(value: unknown): value is RedisOptions {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
