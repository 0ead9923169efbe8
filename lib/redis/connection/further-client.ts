import type { Redis, RedisOptions } from 'ioredis';
import { databaseOf } from './borrowed-state.js';
import { defaultsFor, growingPatience, LONGEST_CONNECT_MS, OWN, prepared } from './client-defaults.js';
import type { RedisClient } from './redis-client.js';

/** What a further client has in place of what the first one has. */
interface FurtherOptions extends RedisOptions {
  /** How long to wait before an attempt to connect, in ms. */
  readonly retryStrategy?: (attempt: number) => number;
  /** Reads what may have changed since, each time it connects. By default the password, and the user's name. */
  readonly follow?: () => RedisOptions;
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
export function besides(client: RedisClient, commandTimeoutMs: number, database?: number): RedisClient {
  const follow = (): RedisOptions => ({ ...credentialsOf(client.redis), db: (database ??= databaseOf(client.redis)) });
  return { ...client, redis: furtherClient(client, commandTimeoutMs, { follow }), borrowed: false };
}

/**
 * Makes a further client. An app may give the client that it lends a new password (the tokens of a cloud end), or a new
 * certificate, which ioredis uses when it reconnects: so does this one.
 *
 * It gets the time to connect that the app sets. A client that it lends mostly has the 10 s of ioredis, too long to
 * begin with.
 */
function furtherClient(
  { redis: first, borrowed, connectTimeoutMs, sentinelTimeoutMs }: RedisClient,
  commandTimeoutMs: number,
  { follow = () => credentialsOf(first), ...more }: FurtherOptions,
): Redis {
  const options = { ...defaultsFor(commandTimeoutMs, first), ...OWN, ...more };
  const longestMs = connectTimeoutMs || LONGEST_CONNECT_MS;
  const connectTimeout = borrowed || !connectTimeoutMs ? Math.min(options.connectTimeout, longestMs) : connectTimeoutMs;
  const sentinelCommandTimeout = sentinelTimeoutMs ?? options.sentinelCommandTimeout;
  const further = first.duplicate({ ...options, connectTimeout, sentinelCommandTimeout });
  const redis = prepared(growingPatience(further, longestMs), sentinelTimeoutMs);
  const connect = redis.connect.bind(redis);
  redis.connect = (callback) => {
    Object.assign(redis.options, follow());
    return connect(callback);
  };
  return redis;
}

function credentialsOf({ options }: Redis): RedisOptions {
  const { username, password, sentinelUsername, sentinelPassword, tls, sentinelTLS } = options;
  return {
    username,
    password,
    sentinelUsername,
    sentinelPassword,
    ...(tls && { tls }),
    ...(sentinelTLS && { sentinelTLS }),
  };
}
