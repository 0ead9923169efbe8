import type { RedisOptions } from 'ioredis';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { nearest } from '../../errors/nearest.js';

/** Options that ioredis 6 has and ioredis 5 has not. */
type NewInIoredis6 = 'himportFieldsets' | 'protocol' | 'replyMapping';

/** The options of ioredis 5 and 6. The type check fails when a version adds one. */
const IOREDIS_OPTIONS: Readonly<Record<keyof RedisOptions | NewInIoredis6, true>> = {
  autoPipeliningIgnoredCommands: true,
  autoResendUnfulfilledCommands: true,
  autoResubscribe: true,
  blockingTimeout: true,
  blockingTimeoutGrace: true,
  clientInfoTag: true,
  commandQueue: true,
  commandTimeout: true,
  connectionName: true,
  Connector: true,
  connectTimeout: true,
  db: true,
  disableClientInfo: true,
  disconnectTimeout: true,
  enableAutoPipelining: true,
  enableOfflineQueue: true,
  enableReadyCheck: true,
  enableTLSForSentinelMode: true,
  failoverDetector: true,
  family: true,
  himportFieldsets: true,
  host: true,
  keepAlive: true,
  keyPrefix: true,
  lazyConnect: true,
  maxLoadingRetryTime: true,
  maxRetriesPerRequest: true,
  monitor: true,
  name: true,
  natMap: true,
  noDelay: true,
  offlineQueue: true,
  password: true,
  path: true,
  port: true,
  preferredSlaves: true,
  protocol: true,
  readOnly: true,
  reconnectOnError: true,
  replyMapping: true,
  retryStrategy: true,
  role: true,
  scripts: true,
  sentinelCommandTimeout: true,
  sentinelMaxConnections: true,
  sentinelPassword: true,
  sentinelReconnectStrategy: true,
  sentinelRetryStrategy: true,
  sentinels: true,
  sentinelTLS: true,
  sentinelUsername: true,
  showFriendlyErrorStack: true,
  socketTimeout: true,
  stringNumbers: true,
  tls: true,
  updateSentinels: true,
  username: true,
};

/** The names of all options of ioredis 5 and 6. */
export const IOREDIS_NAMES = Object.keys(IOREDIS_OPTIONS);

/** Option names of other clients and tools, and what to write here instead. */
const NAMES_ELSEWHERE: Readonly<Record<string, string>> = {
  url: 'Give the URL itself: connection: "redis://…".',
  uri: 'Give the URL itself: connection: "redis://…".',
  socket: 'That is an option of node-redis. Here "host", "port" and "tls" stand in "connection" itself.',
  database: 'ioredis calls it "db".',
  hostname: 'ioredis calls it "host".',
  nodes: 'For a Redis Cluster give an ioredis Cluster client: new Cluster([...]).',
  cluster: 'For a Redis Cluster give an ioredis Cluster client: new Cluster([...]).',
  rootNodes: 'For a Redis Cluster give an ioredis Cluster client: new Cluster([...]).',
};

/** @throws LockOptionsError for a name that is no option of ioredis, with the most similar one */
export function checkNames(names: readonly string[], option: string): void {
  const unknown = names.find((name) => !IOREDIS_NAMES.includes(name));
  if (unknown === undefined) return;
  const meant = nearest(unknown, IOREDIS_NAMES);
  const remedy = Object.hasOwn(NAMES_ELSEWHERE, unknown)
    ? NAMES_ELSEWHERE[unknown]
    : meant
      ? `Did you mean "${meant}"?`
      : 'The options are those of the Redis class of ioredis.';
  throw new LockOptionsError(`"${option}.${unknown}" is no option of ioredis. ${remedy}`);
}
