import type { Cluster, Redis, RedisOptions, SentinelAddress } from 'ioredis';
import { plainOptions } from '../../errors/plain-options.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { shown } from '../../errors/messages.js';
import { checkNames, convertTexts, IOREDIS_NAMES } from './ioredis-options.js';

/** Says where Redis is: a URL, ioredis options (Sentinel included), or a client of the app. */
export type RedisConnectionOption = string | URL | RedisOptions | Redis | Cluster;

/** One Redis; or three or more independent masters, a majority of which decides (Redlock). */
export type RedisConnectionsOption = RedisConnectionOption | readonly RedisConnectionOption[];

/** What a connection may be, for messages. */
const ALLOWED = 'a redis:// or rediss:// URL, ioredis options, or an ioredis client';

/** The options that name the server. At least one must be there, so that nobody locks on a server by accident. */
const ADDRESS = ['host', 'port', 'path', 'sentinels'] as const;

/**
 * Checks the option `connection`, so that a slip can't lead to a server by accident.
 *
 * @param option how the option is named in a message, e.g. `connection[1]`
 * @throws LockOptionsError for anything that is not a URL, known ioredis options that name a server, or an ioredis
 *   client
 */
export function connectionOption(connection: unknown, option = 'connection'): string | RedisOptions | Redis | Cluster {
  if (typeof connection === 'string') return checkedUrl(connection, option);
  if (connection instanceof URL) return checkedUrl(connection.href, option);
  if (typeof connection !== 'object' || connection === null) throw wrong(option, connection);
  if (isIoredisClient(connection)) {
    refuseUrls(connection.options, `${option}.options`);
    return refuseIoredis4(connection, option);
  }
  refuseOtherObjects(connection, option);
  // The check, the log and the client must see the same options: ioredis reads own properties only, and an object can
  // have others.
  const options: RedisOptions = plainOptions(connection, IOREDIS_NAMES);
  checkNames(Object.keys(options), option);
  checkAddress(options, option);
  return convertTexts(options, option);
}

function wrong(option: string, connection: unknown, remedy = ''): LockOptionsError {
  return new LockOptionsError(`"${option}" must be ${ALLOWED}, not ${shown(connection)}.${remedy}`);
}

/** Whether it has what the store needs of an ioredis 5 or 6 client. */
export function isIoredisClient(value: object): value is Redis | Cluster {
  const { status, options, evalsha, sendCommand } = value as Partial<Redis>;
  return (
    typeof evalsha === 'function' &&
    typeof sendCommand === 'function' &&
    typeof status === 'string' &&
    typeof options === 'object'
  );
}

/**
 * Returns the client, unless it is too old. ioredis 5 added `mode` to its client, and removed this field of the
 * cluster's.
 *
 * @throws LockOptionsError for a client of ioredis 4
 */
export function refuseIoredis4<Client extends Redis | Cluster>(client: Client, option: string): Client {
  const isOld = client.isCluster ? 'clearAddedScriptHashesCleanInterval' in client : !('mode' in client);
  if (isOld)
    throw wrong(option, client, ' It looks like a client of ioredis 4: give one of ioredis 5.11 or later, or the URL.');
  return client;
}

function refuseOtherObjects(connection: object, option: string): void {
  const { then, evalSha, sendCommand, evalsha, get, close, disconnect } = connection as Readonly<
    Record<string, unknown>
  >;
  if (typeof then === 'function')
    throw wrong(option, connection, ' Await it first, in the "useFactory" of forRootAsync().');
  if (typeof evalSha === 'function' && typeof sendCommand === 'function') {
    throw wrong(
      option,
      connection,
      ' It looks like a client of node-redis: give the URL that createClient() got, ' +
        'and the module makes its own connection.',
    );
  }
  if (typeof evalsha === 'function' || (typeof get === 'function' && typeof (close ?? disconnect) === 'function')) {
    throw wrong(
      option,
      connection,
      ' It is a client, but not one of ioredis 5 or 6: give the URL, and the module makes its own connection; ' +
        'in a test use LockTestingModule.',
    );
  }
  if (Array.isArray(connection)) throw wrong(option, connection);
}

function checkAddress(connection: RedisOptions, option: string): void {
  const isNamed = (name: (typeof ADDRESS)[number]) => connection[name] !== undefined && connection[name] !== null;
  const isElsewhere = isNamed('sentinels') || isNamed('path');
  // ioredis itself sets what is left out to null: one of host, path and sentinels is enough.
  const missing = ADDRESS.find(
    (name) =>
      name in connection &&
      !isNamed(name) &&
      !isElsewhere &&
      !(isNamed('host') && (name === 'path' || name === 'sentinels')),
  );
  if (missing)
    throw new LockOptionsError(
      `"${option}.${missing}" is ${shown(connection[missing])}: a setting is missing. Set it, or leave it out.`,
    );
  if (!ADDRESS.some(isNamed)) {
    throw new LockOptionsError(
      `"${option}" names no server: give "host" and "port", "path" or "sentinels", as ioredis does, or a URL.`,
    );
  }
  const { host, port, path, db, sentinels, name } = connection;
  for (const [setting, value] of Object.entries({ host, path, ...ofSentinels(sentinels, option, 'host') })) {
    if (value !== undefined && value !== null && (typeof value !== 'string' || value === ''))
      throw new LockOptionsError(`"${option}.${setting}" is ${shown(value)}, but must be a text.`);
  }
  refuseUrls(connection, option);
  if (sentinels && (typeof name !== 'string' || name === ''))
    throw new LockOptionsError(
      `"${option}.name" is ${shown(name)}, but must name the master that the Sentinels watch, e.g. "mymaster".`,
    );
  if (db !== undefined && !/^\d+$/.test(String(db)))
    throw new LockOptionsError(`"${option}.db" is ${shown(db)}, but must be the number of a database.`);
  for (const [setting, value] of Object.entries({ port, ...ofSentinels(sentinels, option, 'port') })) {
    if (value !== undefined && value !== null && !isPort(value))
      throw new LockOptionsError(`"${option}.${setting}" is ${shown(value)}, but must be a number from 1 to 65535.`);
  }
}

/**
 * Refuses a URL that stands for a host. It can hold a password, and logs and health checks show the host.
 *
 * @throws LockOptionsError, which does not show it
 */
function refuseUrls({ host, path, sentinels }: Partial<RedisOptions>, option: string): void {
  const hosts = { host, path, ...ofSentinels(sentinels, option, 'host') };
  const isUrl = ([name, value]: [string, unknown]): boolean =>
    typeof value === 'string' && (value.includes('://') || (name !== 'path' && /[@/]/.test(value)));
  const found = Object.entries(hosts).find(isUrl);
  if (found)
    throw new LockOptionsError(
      `"${option}.${found[0]}" is a URL, or a part of one. Give the URL as "connection" itself, or only its host here.`,
    );
}

/**
 * Lists the hosts or the ports of the Sentinels, also hosts that are missing.
 *
 * @throws LockOptionsError unless each Sentinel is an object
 */
function ofSentinels(
  sentinels: RedisOptions['sentinels'] | null,
  option: string,
  part: 'host' | 'port',
): Record<string, unknown> {
  if (sentinels === undefined || sentinels === null) return {};
  if (!Array.isArray(sentinels) || sentinels.length === 0) {
    const given = Array.isArray(sentinels) ? 'names none' : `is ${shown(sentinels)}`;
    throw new LockOptionsError(`"${option}.sentinels" ${given}, but must be an array of { host, port }.`);
  }
  const parts = Array.from(sentinels as readonly (Partial<SentinelAddress> | null)[], (one, at) => {
    if (typeof one !== 'object' || one === null)
      throw new LockOptionsError(`"${option}.sentinels[${at}]" is ${shown(one)}, but must be { host, port }.`);
    return [`sentinels[${at}].${part}`, one[part] ?? (part === 'host' ? '' : undefined)] as const;
  });
  return Object.fromEntries(parts);
}

/** Whether it is a port: a number, or a text, as settings are. */
function isPort(port: unknown): boolean {
  if (typeof port !== 'number' && !(typeof port === 'string' && /^\d+$/.test(port))) return false;
  return Number.isInteger(Number(port)) && Number(port) >= 1 && Number(port) <= 65_535;
}

/** Checks a URL, but not its query. No message shows it, because it can hold a password. */
function checkedUrl(text: string, option: string): string {
  if (!/^rediss?:\/\/./.test(text)) {
    throw new LockOptionsError(
      `"${option}" is a string, but not a URL that starts with redis:// or rediss://, e.g. "redis://127.0.0.1:6379".`,
    );
  }
  if (!URL.canParse(text)) {
    throw new LockOptionsError(
      `"${option}" is a URL that can't be read. Look at its host and port; and in a user name or a password, ` +
        'write %23 for #, %2F for / and %3F for ?.',
    );
  }
  const { hostname, pathname, username, password } = new URL(text);
  if (hostname === '')
    throw new LockOptionsError(`"${option}" is a URL without a host, e.g. "redis://127.0.0.1:6379".`);
  if (!/^\/?\d*$/.test(pathname))
    throw new LockOptionsError(
      `"${option}" is a URL whose path is not the number of a database, e.g. "redis://127.0.0.1:6379/2".`,
    );
  if (!isDecodable(username) || !isDecodable(password))
    throw new LockOptionsError(`"${option}" is a URL with a % that begins no code such as %40: write %25 for it.`);
  return text;
}

/** Whether ioredis can read it from a URL. */
function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}
