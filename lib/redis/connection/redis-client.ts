import { Redis, type Cluster, type RedisOptions } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { shown } from '../../errors/messages.js';
import { databaseOf } from './borrowed-state.js';
import { connectionOption, isIoredisClient, refuseIoredis4 } from './connection-option.js';
import { optionsOfUrl } from './ioredis-options.js';
import { saidBy } from './redis-diagnosis.js';

export interface RedisClient {
  readonly redis: Redis;
  /** The app's own client: never closed, never reconfigured. */
  readonly borrowed: boolean;
}

/** What a further client has in place of what the first one has. */
interface FurtherOptions extends RedisOptions {
  /** How long to wait before an attempt to connect, in ms. */
  readonly retryStrategy?: (attempt: number) => number;
  /** Reads what may have changed since, each time it connects. By default the password, and the user's name. */
  readonly follow?: () => RedisOptions;
}

/** Makes our own client fail fast, whatever the app's options say: `RedisConnection` itself waits and resends. */
const OWN = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
} as const satisfies RedisOptions;

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
  if (typeof checked === 'string') {
    const url = new URL(checked);
    const more = optionsOfUrl(url, option);
    url.search = '';
    const redis = new Redis(url.href, { ...defaultsFor(commandTimeoutMs), ...more, ...OWN });
    return { redis: outsideRequests(withoutPrefix(redis, option)), borrowed: false };
  }
  if (!isIoredisClient(checked)) {
    const redis = new Redis({ ...defaultsFor(commandTimeoutMs), ...checked, ...OWN });
    return { redis: outsideRequests(withoutPrefix(redis, option)), borrowed: false };
  }
  if (checked.isCluster)
    throw new LockOptionsError('A Redis Cluster client can only be the whole "connection", not one of several.');
  return { redis: withoutPrefix(checked as Redis, option), borrowed: true };
}

/** Makes a separate connection to the client's server, for a subscription. */
export function subscriberOf(client: RedisClient, commandTimeoutMs: number, more: FurtherOptions = {}): Redis {
  return furtherClient(client, commandTimeoutMs, {
    autoResubscribe: false,
    // It may be silent for hours. If it is silent while a command is in flight, it is dead, and the client reconnects.
    socketTimeout: commandTimeoutMs,
    ...more,
  });
}

/**
 * Makes a second connection to the client's server, for commands. It uses the database that the client uses when it is
 * first needed: the app may switch a client that it lends until the first lock.
 */
export function besides(client: RedisClient, commandTimeoutMs: number): RedisClient {
  let database: number | undefined;
  const follow = (): RedisOptions => ({ ...credentialsOf(client.redis), db: (database ??= databaseOf(client.redis)) });
  return { redis: furtherClient(client, commandTimeoutMs, { follow }), borrowed: false };
}

/**
 * Makes a further client. An app may give the client that it lends a new password (the tokens of a cloud end), which
 * ioredis uses when it reconnects: so does this one.
 *
 * An attempt to connect may take as long as the app says. A client that it lends has the 10 s of ioredis, too long to
 * find out that a server has gone: the first attempts are shorter, and each may take twice as long as the one before.
 */
function furtherClient(
  { redis: first, borrowed }: RedisClient,
  commandTimeoutMs: number,
  { follow = () => credentialsOf(first), ...more }: FurtherOptions,
): Redis {
  const options = { ...defaultsFor(commandTimeoutMs, first), ...OWN, ...more };
  const shortestMs = options.connectTimeout;
  const longestMs = first.options.connectTimeout || shortestMs;
  const firstMs = borrowed ? Math.min(shortestMs, longestMs) : longestMs;
  const retryStrategy = (attempt: number): number => {
    redis.options.connectTimeout = Math.min(longestMs, firstMs * 2 ** (attempt - 1));
    return options.retryStrategy(attempt);
  };
  const redis = outsideRequests(first.duplicate({ ...options, connectTimeout: firstMs, retryStrategy }));
  const connect = redis.connect.bind(redis);
  redis.connect = (callback) => {
    Object.assign(redis.options, follow());
    return connect(callback);
  };
  return redis;
}

function credentialsOf({ options: { username, password, sentinelUsername, sentinelPassword } }: Redis): RedisOptions {
  return { username, password, sentinelUsername, sentinelPassword };
}

/**
 * Makes one of the library's clients connect, reconnect and emit its events outside of all requests. Otherwise replies
 * would arrive in the async context that the connection was made in, and the end of a connection in that of the request
 * whose write failed.
 */
function outsideRequests(redis: Redis): Redis {
  const connect = redis.connect.bind(redis);
  const emit = redis.emit.bind(redis);
  redis.connect = (callback) => atRoot(() => connect(callback));
  redis.emit = (...event) => atRoot(() => emit(...event));
  return redis;
}

function defaultsFor(commandTimeoutMs: number, client?: Redis) {
  const patientMs = Math.max(commandTimeoutMs, 1000);
  return {
    connectionName: 'nest-redis-lock',
    connectTimeout: patientMs,
    // A Sentinel that accepts the connection and says nothing: ask the next one. The time to connect counts too.
    sentinelCommandTimeout: client?.options.sentinelCommandTimeout ?? patientMs,
    // How soon to ask again whether a server that loads its data is ready.
    maxLoadingRetryTime: 200,
    // How long a timer of ioredis keeps the process alive after a disconnect while Redis is away.
    disconnectTimeout: 100,
    // A master that became a replica: find the new one.
    reconnectOnError: (error) => saidBy(error).startsWith('READONLY'),
    failoverDetector: true,
    retryStrategy: (attempt) => retryDelayMs(attempt, 50),
  } satisfies RedisOptions;
}

/**
 * How long to wait before the next attempt to connect: twice as long each time, up to a second; up to half less by
 * chance.
 */
export function retryDelayMs(attempt: number, firstMs: number): number {
  return Math.min(firstMs * 2 ** Math.min(attempt, 10), 1000) * (0.5 + Math.random() / 2);
}

function withoutPrefix<Client extends Redis | Cluster>(client: Client, option = 'connection'): Client {
  const { keyPrefix } = client.options;
  if (!keyPrefix) return client;
  throw new LockOptionsError(
    `"${option}.keyPrefix" is ${shown(keyPrefix)}, so lock keys would not live where other tools look for them. ` +
      'Use the module\'s own "keyPrefix"; for a client of yours give a duplicate without it.',
  );
}
