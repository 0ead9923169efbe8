import type { RedisOptions } from 'ioredis';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { shown } from '../../errors/messages.js';
import { nearest } from '../../errors/nearest.js';

/** Options that ioredis 6 has and ioredis 5 has not. */
type NewInIoredis6 = 'himportFieldsets' | 'protocol' | 'replyMapping';

/** What an option may be. A URL can hold all but what is code: functions, objects and arrays. */
type Kind = 'number' | 'boolean' | 'text' | 'code';

/** The options of ioredis 5 and 6. The type check fails when a version adds one. */
const IOREDIS_OPTIONS: Readonly<Record<keyof RedisOptions | NewInIoredis6, Kind>> = {
  autoPipeliningIgnoredCommands: 'code',
  autoResendUnfulfilledCommands: 'boolean',
  autoResubscribe: 'boolean',
  blockingTimeout: 'number',
  blockingTimeoutGrace: 'number',
  clientInfoTag: 'text',
  commandQueue: 'boolean',
  commandTimeout: 'number',
  connectionName: 'text',
  Connector: 'code',
  connectTimeout: 'number',
  db: 'number',
  disableClientInfo: 'boolean',
  disconnectTimeout: 'number',
  enableAutoPipelining: 'boolean',
  enableOfflineQueue: 'boolean',
  enableReadyCheck: 'boolean',
  enableTLSForSentinelMode: 'boolean',
  failoverDetector: 'boolean',
  family: 'number',
  himportFieldsets: 'code',
  host: 'text',
  keepAlive: 'number',
  keyPrefix: 'text',
  lazyConnect: 'boolean',
  maxLoadingRetryTime: 'number',
  maxRetriesPerRequest: 'number',
  monitor: 'boolean',
  name: 'text',
  natMap: 'code',
  noDelay: 'boolean',
  offlineQueue: 'boolean',
  password: 'text',
  path: 'text',
  port: 'number',
  preferredSlaves: 'code',
  protocol: 'number',
  readOnly: 'boolean',
  reconnectOnError: 'code',
  replyMapping: 'text',
  retryStrategy: 'code',
  role: 'text',
  scripts: 'code',
  sentinelCommandTimeout: 'number',
  sentinelMaxConnections: 'number',
  sentinelPassword: 'text',
  sentinelReconnectStrategy: 'code',
  sentinelRetryStrategy: 'code',
  sentinels: 'code',
  sentinelTLS: 'code',
  sentinelUsername: 'text',
  showFriendlyErrorStack: 'boolean',
  socketTimeout: 'number',
  stringNumbers: 'boolean',
  tls: 'text',
  updateSentinels: 'boolean',
  username: 'text',
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
  if (!/^\w+$/.test(unknown))
    throw new LockOptionsError(
      `"${option}" has an option that is no word. If it comes from a URL, write "?", "#" and "@" of the password as ` +
        '%3F, %23 and %40.',
    );
  throw new LockOptionsError(`"${option}.${unknown}" is no option of ioredis. ${remedy}`);
}

/**
 * Converts numbers and booleans that are texts, as settings are. ioredis does not: a `connectTimeout` that is a text
 * would end the process.
 *
 * @throws LockOptionsError for a number or a boolean that is neither, and not its text
 */
export function convertTexts(options: RedisOptions, option: string): RedisOptions {
  const converted = Object.entries(options).map(([name, value]: [string, unknown]): [string, unknown] => {
    const kind = IOREDIS_OPTIONS[name as keyof RedisOptions];
    if (value === undefined || value === null) return [name, value];
    if (kind === 'number') return [name, asNumber(value, `${option}.${name}`)];
    if (kind === 'boolean') return [name, asBoolean(value, `${option}.${name}`)];
    return [name, value];
  });
  return Object.fromEntries(converted);
}

/**
 * Reads the options behind the "?" of a URL.
 *
 * @throws LockOptionsError for an unknown option, a wrong value, or an option that is code
 */
export function optionsOfUrl({ searchParams }: URL, option: string): RedisOptions {
  const options = Object.fromEntries(searchParams);
  checkNames(Object.keys(options), option);
  const code = Object.keys(options).find((name) => IOREDIS_OPTIONS[name as keyof RedisOptions] === 'code');
  if (code === undefined) return convertTexts(options, option);
  throw new LockOptionsError(`"${option}.${code}" can't stand in a URL: give ioredis options in place of the URL.`);
}

function asNumber(value: unknown, option: string): number {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isFinite(number)) return number;
  throw new LockOptionsError(`"${option}" is ${shown(value)}, but must be a finite number.`);
}

function asBoolean(value: unknown, option: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true';
  if (typeof value === 'boolean') return value;
  throw new LockOptionsError(`"${option}" is ${shown(value)}, but must be true or false.`);
}
