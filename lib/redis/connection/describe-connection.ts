import type { Cluster, RedisOptions } from 'ioredis';
import { isCluster, redisClient } from './redis-client.js';
import type { RedisConnectionsOption } from './connection-option.js';

/** Describes the servers of a connection for a log line, without passwords. */
export function describeConnection(connection: RedisConnectionsOption): string {
  if (Array.isArray(connection)) return `a quorum of ${connection.length}: ${connection.map(describeOne).join('; ')}`;
  return isCluster(connection) ? `a Redis Cluster${startupNodes(connection)}` : describeOne(connection);
}

function describeOne(connection: unknown): string {
  const { redis, borrowed } = redisClient(connection, 1000);
  return `${describeOptions(redis.options)}${borrowed ? " (the app's own client)" : ''}`;
}

function describeOptions({ host, port, path, sentinels, name, db = 0, tls }: RedisOptions): string {
  const sentinelsText = sentinels?.map((one) => `${one.host ?? '127.0.0.1'}:${one.port ?? 26379}`).join(', ');
  if (sentinelsText) return `the Redis master "${name}" behind the Sentinels ${sentinelsText}, database ${db}`;
  return `Redis at ${path ?? `${host}:${port}`}${tls ? ' (TLS)' : ''}, database ${db}`;
}

/** Lists the masters that are known by now: none before the client connects. */
function startupNodes(cluster: Cluster): string {
  const nodes = cluster.nodes('master').map(({ options: { host, port } }) => `${host}:${port}`);
  return nodes.length > 0 ? ` with the masters ${nodes.join(', ')}` : '';
}
