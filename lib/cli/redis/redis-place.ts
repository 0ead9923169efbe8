import { Cluster, type RedisOptions } from 'ioredis';
import { lettingOneHang } from '../../redis/connection/client-defaults.js';
import type { RedisConnectionOption, RedisConnectionsOption } from '../../redis/connection/connection-option.js';
import type { Arguments } from '../arguments/arguments.js';
import { UsageError } from '../arguments/usage.error.js';

const SENTINEL_PORT = 26379;
const REDIS_PORT = 6379;

/** Where Redis is, as the command line or the environment says. */
export interface RedisPlace {
  readonly connection: RedisConnectionsOption;
  /** Closes the client of a cluster, which the locks only borrow. */
  readonly close: () => void;
}

/**
 * Reads `--redis`, or `REDIS_URL`.
 *
 * @throws UsageError when neither says where Redis is: nobody locks on a server by accident
 */
export function redisPlace(given: Arguments, env: NodeJS.ProcessEnv = process.env): RedisPlace {
  const named = given.list('redis');
  const urls = (named.length > 0 ? named : [env['REDIS_URL'] ?? '']).flatMap(separated);
  if (urls.includes(''))
    throw new UsageError(
      `${named.length > 0 ? '--redis is empty' : 'Nothing says where Redis is'}: ` +
        'set REDIS_URL or give --redis, e.g. redis://127.0.0.1:6379.',
    );
  const connections = urls.map(connectionTo);
  const [connection] = connections;
  return {
    connection: connections.length > 1 ? connections : connection!,
    close: () => connections.forEach((one) => one instanceof Cluster && one.disconnect()),
  };
}

/** The commas between URLs; those between the hosts of one URL are not followed by a scheme. */
const separated = (urls: string): string[] => urls.split(/,\s*(?=rediss?(?:\+\w+)?:\/\/)/);

/** `redis+sentinel://user:password@host:26379,host:26379/name/0?sentinelPassword=…`, or the same for a cluster. */
const SEVERAL_HOSTS =
  /^(?<tls>rediss?)\+(?<kind>sentinel|cluster):\/\/(?:(?<login>[^@/?]*)@)?(?<hosts>[^/?@]+)(?<path>\/[^?]*)?(?:\?(?<query>.*))?$/;

function connectionTo(url: string): RedisConnectionOption | Cluster {
  const parts = SEVERAL_HOSTS.exec(url)?.groups;
  if (!parts) {
    // The library itself reads redis:// and rediss://.
    if (/^rediss?:/.test(url)) return url;
    throw new UsageError(
      'The address of Redis is no URL that starts with redis://, rediss://, redis+sentinel:// or redis+cluster://.',
    );
  }
  const { tls, kind, login, hosts, path = '', query } = parts;
  const options = { ...loginOf(login), ...(tls === 'rediss' ? { tls: {} } : {}) };
  return kind === 'sentinel'
    ? behindSentinel(options, hostsOf(hosts!, SENTINEL_PORT), path, new URLSearchParams(query))
    : clusterOf(options, hostsOf(hosts!, REDIS_PORT), path);
}

type Host = { readonly host: string; readonly port: number };

function behindSentinel(options: RedisOptions, sentinels: Host[], path: string, query: URLSearchParams): RedisOptions {
  const [, name = '', db = '0'] = path.split('/');
  if (name === '' || !/^\d+$/.test(db))
    throw new UsageError(
      'The URL of the Sentinels must name the master: redis+sentinel://host:26379,host:26379/master-name, ' +
        'and may go on with the number of a database: /0.',
    );
  const login = ['sentinelUsername', 'sentinelPassword'].flatMap((name) => {
    const value = query.get(name);
    return value === null ? [] : [[name, value]];
  });
  const tls = options.tls ? { sentinelTLS: options.tls, enableTLSForSentinelMode: true } : {};
  return {
    ...options,
    ...tls,
    ...(Object.fromEntries(login) as RedisOptions),
    sentinels,
    name: decoded(name),
    db: Number(db),
  };
}

function clusterOf(options: RedisOptions, nodes: Host[], path: string): Cluster {
  if (!['', '/', '/0'].includes(path))
    throw new UsageError('A cluster has only the database 0: leave out the path of its URL.');
  const cluster = new Cluster(nodes, {
    lazyConnect: true,
    enableOfflineQueue: true,
    redisOptions: { connectionName: 'nest-redis-lock', ...options },
    // A certificate names a host, not its address.
    ...(options.tls ? { dnsLookup: (address, done) => done(null, address) } : {}),
  });
  // What fails is an error of the call.
  return lettingOneHang(cluster, 500).on('error', () => undefined);
}

function loginOf(login: string | undefined): Pick<RedisOptions, 'username' | 'password'> {
  if (!login) return {};
  const [username = '', ...rest] = login.split(':');
  const password = rest.join(':');
  return {
    ...(username === '' ? {} : { username: decoded(username) }),
    ...(rest.length === 0 ? {} : { password: decoded(password) }),
  };
}

function hostsOf(hosts: string, defaultPort: number): Host[] {
  return hosts.split(',').map((text) => {
    const [, v6, name, port = defaultPort] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text.trim()) ?? [];
    const host = v6 ?? name;
    if (host === undefined || Number(port) < 1 || Number(port) > 65_535)
      throw new UsageError('A host in the address of Redis must be written as host:port, with commas between hosts.');
    return { host, port: Number(port) };
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError('The address of Redis has a % that begins no code such as %40: write %25 for it.');
  }
}
