import { LockOptionsError } from '../errors/lock-options.error.js';
import { shown } from '../errors/messages.js';
import type { LockStore } from '../store/lock-store.js';
import { QuorumLockStore } from '../store/quorum/quorum-lock.store.js';
import { ClusterLockStore } from './cluster/cluster-lock.store.js';
import { DurableLockStore, type DurabilityTerms } from './durability/durable-lock.store.js';
import type { RedisConnectionOption, RedisConnectionsOption } from './connection/connection-option.js';
import { isCluster, redisClient } from './connection/redis-client.js';
import type { TransportOptions } from './single/transport.js';
import { RedisLockStore } from './single/redis-lock.store.js';
import { RestartSafeLockStore } from './durability/restart-safe-lock.store.js';

interface RedisStoreOptions extends Omit<TransportOptions, 'connection' | 'isNode' | 'renewsApart'> {
  readonly connection: RedisConnectionsOption;
  readonly durability: DurabilityTerms | undefined;
  /** The lease of those who don't name one, in ms. */
  readonly leaseMs: number;
}

/**
 * A store on one Redis, or on a quorum of them.
 *
 * @throws LockOptionsError when the connection is none, or an array that makes no quorum
 */
export function redisStore({ connection, durability, leaseMs, ...options }: RedisStoreOptions): LockStore {
  if (!Array.isArray(connection)) {
    const one = { ...options, connection: connection as RedisConnectionOption };
    if (isCluster(connection)) {
      if (!durability) return new ClusterLockStore(connection, one);
      throw new LockOptionsError(
        '"durability" can\'t be had on a Redis Cluster: "WAIT" would have to go to the node of each key. Give one Redis with replicas, or leave it out.',
      );
    }
    return durability ? new DurableLockStore({ ...one, durability, leaseMs }) : new RedisLockStore(one);
  }
  if (durability)
    throw new LockOptionsError(
      '"durability" is for one master with replicas: on a quorum it is the majority that makes a grant last. Leave it out.',
    );
  const connections = connection as readonly RedisConnectionOption[];
  checkCount(connections.length);
  const addresses = connections.map((one, at) => addressOf(one, at, options.commandTimeoutMs));
  const twice = addresses.findIndex((address, at) => addresses.indexOf(address) < at);
  if (twice >= 0) {
    throw new LockOptionsError(
      `"connection[${addresses.indexOf(addresses[twice]!)}]" and "connection[${twice}]" are the same Redis. Each must be a master of its own: one that counts twice would decide alone.`,
    );
  }
  return new QuorumLockStore(
    connections.map((one) => new RestartSafeLockStore({ ...options, leaseMs, connection: one, isNode: true })),
  );
}

function checkCount(count: number): void {
  if (count >= 3 && count % 2 === 1) return;
  const why =
    count < 3
      ? 'Redlock needs at least three independent masters, so that one may fail'
      : `an even number bears no more failures than ${count - 1} would, and two callers can get half each`;
  throw new LockOptionsError(
    `"connection" is an array of ${count}, but must be one URL, ioredis options or client, or an array of 3, 5 or 7 of them: ${why}.`,
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
      `"connection[${at}]" is a Redis Cluster client, but a quorum is made of single masters that know nothing of each other.`,
    );
  }
  return redisClient(connection, commandTimeoutMs, `connection[${at}]`).redis;
}
