import type { Cluster, Redis } from 'ioredis';
import { retryDelayMs } from '../connection/client-defaults.js';
import { subscriberOf } from '../connection/further-client.js';
import { borrowedClient } from '../connection/redis-client.js';
import type { ClusterConnection } from './cluster-connection.js';

/** The connection over which calls go: through the app's client, until it has closed that. */
type Calls = Pick<ClusterConnection, 'client' | 'lookForMasters'>;

/**
 * Makes a separate connection to one of the masters, for a subscription: a message that is published on one node
 * reaches all. When the connection drops, it is made to another master. (The cluster client's own subscriber does not
 * report missed messages.)
 *
 * @returns undefined while no node is known
 */
export function subscriberIn(calls: Calls, commandTimeoutMs: number): Redis | undefined {
  const first = someMaster(calls.client);
  if (!first) return undefined;
  const redis: Redis = subscriberOf(borrowedClient(first), commandTimeoutMs, {
    readOnly: false,
    retryStrategy: (attempt) => retryDelayMs(attempt, 20),
    follow: () => {
      const cluster = calls.client;
      const { host, port, ...node } = (someMaster(cluster, redis) ?? redis).options;
      // A node keeps the password that it was made with. The app may have given the client a new one since.
      const { username = node.username, password = node.password } = cluster.options.redisOptions ?? {};
      return { host, port, username, password };
    },
  });
  // Its node may have left the cluster: the client does not notice that as long as it needs none of its slots.
  redis.on('close', () => calls.lookForMasters());
  return redis;
}

/** Picks any master, but this one only if there are no others. */
function someMaster(cluster: Cluster, but?: Redis): Redis | undefined {
  const masters = cluster.nodes('master');
  const others = masters.filter(
    ({ options: { host, port } }) => host !== but?.options.host || port !== but?.options.port,
  );
  const from = others.length > 0 ? others : masters;
  return from[Math.floor(Math.random() * from.length)];
}
