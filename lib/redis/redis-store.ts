import { LockOptionsError } from '../errors/lock-options.error.js';
import { shown } from '../errors/messages.js';
import type { LockStore } from '../store/lock-store.js';
import { QuorumLockStore } from '../store/quorum/quorum-lock.store.js';
import { quorumSizeProblem } from '../store/quorum/quorum-nodes.js';
import { ClusterLockStore } from './cluster/cluster-lock.store.js';
import { connectToCluster } from './cluster/cluster-transport.js';
import type { RedisConnectionOption } from './connection/connection-option.js';
import { isCluster, redisClient } from './connection/redis-client.js';
import { DurableLockStore } from './durability/durable-lock.store.js';
import type { DurabilityTerms } from './durability/replica-acknowledgements.js';
import { RestartSafeLockStore, RestartSafeNode } from './durability/restart-safe-lock.store.js';
import { RedisLockStore } from './locks/redis-lock.store.js';
import { connectToRedis } from './locks/transport.js';
import { oneRedisStore, type OneRedisOptions, type RedisStoreOptions } from './one-redis-store.js';

/**
 * Makes the store on one Redis, on a Redis Cluster, or on a quorum of several Redis.
 *
 * @throws LockOptionsError when the connection is none of these, or can't have the durability that is asked for
 */
export function redisStore(options: RedisStoreOptions): LockStore {
  const one = oneRedisStore(options);
  if (one) return one;
  const { connection, durability } = options;
  if (Array.isArray(connection)) return quorumStore(connection as readonly RedisConnectionOption[], options);
  if (isCluster(connection)) {
    if (!durability) return new ClusterLockStore(connectToCluster(connection, options));
    throw new LockOptionsError(
      '"durability" is not possible on a Redis Cluster: "WAIT" would have to go to the node of each key. ' +
        'Give one Redis with replicas, or leave it out.',
    );
  }
  return durableStore(options, durability!);
}

/**
 * Makes a store whose grants count when replicas or disks have them, and that grants nothing after a restart for a
 * while.
 */
function durableStore({ leaseMs, ...options }: OneRedisOptions, durability: DurabilityTerms): LockStore {
  const transport = connectToRedis({ ...options, isDurable: true });
  const store = new DurableLockStore(new RedisLockStore(transport), transport, durability);
  return new RestartSafeLockStore(store, transport, { longestLeaseMs: leaseMs, isOneServer: false });
}

function quorumStore(
  connections: readonly RedisConnectionOption[],
  { durability, leaseMs, ...options }: RedisStoreOptions,
): LockStore {
  if (durability)
    throw new LockOptionsError(
      '"durability" is for one master with replicas: on a quorum it is the majority that makes a grant last. ' +
        'Leave it out.',
    );
  checkQuorum(connections, options.commandTimeoutMs);
  const nodes = connections.map((connection) => {
    const transport = connectToRedis({ ...options, connection, isNode: true });
    return new RestartSafeNode(new RedisLockStore(transport), transport, {
      longestLeaseMs: leaseMs,
      isOneServer: true,
    });
  });
  return new QuorumLockStore(nodes);
}

function checkQuorum(connections: readonly RedisConnectionOption[], commandTimeoutMs: number): void {
  const problem = quorumSizeProblem(connections.length);
  if (problem)
    throw new LockOptionsError(
      `"connection" is an array of ${connections.length}, but must be one URL, ioredis options or client, ` +
        `or an array of 3, 5 or 7 of them (Redlock): ${problem}.`,
    );
  const addresses = connections.map((one, at) => addressOf(one, at, commandTimeoutMs));
  const twice = addresses.findIndex((address, at) => addresses.indexOf(address) < at);
  if (twice < 0) return;
  throw new LockOptionsError(
    `"connection[${addresses.indexOf(addresses[twice]!)}]" and "connection[${twice}]" are the same Redis. ` +
      'Each must be a master of its own: one that counts twice would decide alone.',
  );
}

/** Tells two Redis servers apart, as far as their names do. */
function addressOf(connection: RedisConnectionOption, at: number, commandTimeoutMs: number): string {
  const { host, port, path, sentinels, name } = checked(connection, at, commandTimeoutMs).options;
  if (sentinels) return `${name} ${JSON.stringify(sentinels)}`;
  return path ?? `${host === 'localhost' ? '127.0.0.1' : host}:${port}`;
}

/** @throws LockOptionsError that names the one that is wrong */
function checked(connection: unknown, at: number, commandTimeoutMs: number): ReturnType<typeof redisClient>['redis'] {
  if (Array.isArray(connection))
    throw new LockOptionsError(
      `"connection[${at}]" is ${shown(connection)}, but must be a URL, ioredis options or a client.`,
    );
  if (typeof connection === 'object' && (connection as { isCluster?: unknown } | null)?.isCluster) {
    throw new LockOptionsError(
      `"connection[${at}]" is a Redis Cluster client, ` +
        'but a quorum is made of single masters that know nothing of each other.',
    );
  }
  return redisClient(connection, commandTimeoutMs, `connection[${at}]`).redis;
}
