import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { readyWhileConnected } from './ready-while-connected.js';
import { saidBy } from './redis-diagnosis.js';
import { hearingFailovers } from './sentinel-failovers.js';

/** Makes our own client fail fast, whatever the app's options say: `RedisConnection` itself waits and resends. */
export const OWN = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
} as const satisfies RedisOptions;

/** How long a connection may take to be made in the end where the app sets no `connectTimeout`, in ms. */
export const LONGEST_CONNECT_MS = 10_000;

/**
 * Prepares one of the library's own clients.
 *
 * @param sentinelTimeoutMs how long a Sentinel may take to reply, if the app sets it
 */
export function prepared(redis: Redis, sentinelTimeoutMs: number | undefined): Redis {
  if (sentinelTimeoutMs === undefined) growingSentinelPatience(redis);
  hearingFailovers(redis);
  return outsideRequests(readyWhileConnected(reconnectingOnce(redis)));
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

/**
 * Gives each attempt to connect twice as long as the one before, up to a limit: the first ones are short, because the
 * server may have gone and another taken its place, and some servers are always slow to connect to.
 */
export function growingPatience(redis: Redis, longestMs: number): Redis {
  const { connectTimeout: firstMs, retryStrategy } = redis.options;
  redis.options.retryStrategy = (attempt) => {
    redis.options.connectTimeout = Math.min(longestMs, firstMs! * 2 ** (attempt - 1));
    return retryStrategy?.(attempt);
  };
  return redis;
}

/**
 * Gives the Sentinels twice as long each time that none of them answered in time, until one leads to a server: all may
 * be far away.
 */
function growingSentinelPatience(redis: Redis): void {
  const { options } = redis;
  const { sentinelCommandTimeout: firstMs, sentinelRetryStrategy } = options;
  let beganAt = now();
  redis.on('connecting', () => (beganAt = now()));
  redis.on('connect', () => (options.sentinelCommandTimeout = firstMs));
  options.sentinelRetryStrategy = function (this: unknown, attempt) {
    const delayMs = sentinelRetryStrategy?.(attempt);
    // A copy of the client has a strategy of its own, which calls this one.
    if (this !== options) return delayMs;
    const patienceMs = options.sentinelCommandTimeout!;
    // Sentinels that refuse at once are not far away.
    if (now() - beganAt > patienceMs / 2) options.sentinelCommandTimeout = Math.min(LONGEST_CONNECT_MS, 2 * patienceMs);
    beganAt = now() + (Number(delayMs) || 0);
    return delayMs;
  };
}

/**
 * Reconnects one of the library's clients once for each connection, however many replies on it ask for that: ioredis
 * adds a listener to the connection each time. It does not send the command again, as an app can ask for: the library
 * does so itself, when it has seen why.
 */
function reconnectingOnce(redis: Redis): Redis {
  const { reconnectOnError } = redis.options;
  let isAsked = false;
  redis.on('connect', () => (isAsked = false));
  redis.options.reconnectOnError = (error) => {
    const answer = !isAsked && Boolean(reconnectOnError?.(error));
    isAsked ||= answer;
    return answer;
  };
  return redis;
}

/** What a client has where the app sets nothing else. */
export function defaultsFor(commandTimeoutMs: number, client?: Redis) {
  const patientMs = Math.max(commandTimeoutMs, 1000);
  return {
    connectionName: 'nest-redis-lock',
    connectTimeout: patientMs,
    // Before a firewall forgets a connection that is idle. ioredis 5 leaves it to the kernel: two hours.
    keepAlive: client?.options.keepAlive || 30_000,
    // A Sentinel that accepts the connection and says nothing: ask the next one, within the time of the same call. The
    // time to connect counts too.
    sentinelCommandTimeout: Math.ceil(commandTimeoutMs / 3),
    // How soon to ask again whether a server that loads its data is ready.
    maxLoadingRetryTime: 200,
    // How long a timer of ioredis keeps the process alive after a disconnect while Redis is away.
    disconnectTimeout: 100,
    // A master that became a replica: find the new one.
    reconnectOnError: (error) => saidBy(error).startsWith('READONLY'),
    failoverDetector: true,
    // By default, a Sentinel that restarts is never listened to again.
    sentinelReconnectStrategy: (attempt) => retryDelayMs(attempt, 50),
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

/**
 * Prepares a cluster client of our own so that one node that hangs does not take the whole time of a call, or even
 * longer, as it does by default: ioredis reads the slots from one node after the other, and then waits until one of
 * them says that the cluster is well. When no node was fast enough, the next attempt to connect gives each twice as
 * long, because all may be far away. Once a node replies, that goes back to four times what it took.
 *
 * @param perNodeMs how long to wait for the slots from one node at first, in ms
 */
export function lettingOneHang(cluster: Cluster, perNodeMs: number): Cluster {
  const { options } = cluster;
  const refreshSlotsCache = cluster.refreshSlotsCache.bind(cluster);
  let beganAt: number | undefined;
  options.slotsRefreshTimeout = perNodeMs;
  options.enableReadyCheck = false;
  options.clusterRetryStrategy = (attempt) => {
    options.slotsRefreshTimeout = Math.min(perNodeMs * 2 ** attempt, LONGEST_CONNECT_MS);
    return retryDelayMs(attempt, 50);
  };
  cluster.refreshSlotsCache = (done) => {
    beganAt ??= now();
    refreshSlotsCache((error) => {
      beganAt = undefined;
      done?.(error);
    });
  };
  cluster.on('refresh', () => {
    const enoughMs = beganAt === undefined ? Infinity : 4 * (now() - beganAt);
    options.slotsRefreshTimeout = Math.min(options.slotsRefreshTimeout!, Math.max(perNodeMs, enoughMs));
  });
  return cluster;
}
