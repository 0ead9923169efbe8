import type { Redis } from 'ioredis';
import { KeyNames } from '../wire/key-names.js';
import { LockBatch } from './lock-batch.js';
import type { RedisConnectionOption } from '../connection/connection-option.js';
import { besides, redisClient, subscriberOf } from '../connection/redis-client.js';
import { LOCKS } from '../lua/locks.script.js';
import { ServerCheck } from '../connection/server-check.js';
import type { Connection } from '../connection/connection.js';
import { SILENT, type OutageLog } from '../connection/outage-log.js';
import { RedisConnection } from '../connection/redis-connection.js';

/** Where a store's Redis is, and how to talk to it. */
export interface TransportOptions {
  readonly connection: RedisConnectionOption;
  readonly keyPrefix: string;
  readonly commandTimeoutMs: number;
  readonly log: OutageLog;
  /** Whether renewals go over a connection of their own. */
  readonly renewsSeparately?: boolean;
  /** Whether it is one of the nodes of a quorum. */
  readonly isNode?: boolean;
}

/** Sends the operations of one tick together. */
export type Operations = Pick<LockBatch, 'add' | 'raise' | 'close'>;

/** The ways of a store to its Redis. */
export interface Transport {
  readonly names: KeyNames;
  readonly redis: Connection;
  /** What renews: the same, if nothing there holds it up. */
  readonly renewals: Connection;
  readonly batch: Operations;
  /** Makes a connection of our own for a subscription; undefined while no server is known. */
  readonly subscriber: () => Redis | undefined;
}

/** @param connected told when a connection was made: the first, or again */
export function connectToRedis(options: TransportOptions, connected: (reconnected: boolean) => void): Transport {
  const { commandTimeoutMs, log } = options;
  const client = redisClient(options.connection, commandTimeoutMs);
  const names = new KeyNames(options.keyPrefix);
  const redis: Connection = new RedisConnection(client, commandTimeoutMs, log, (reconnected) => {
    connected(reconnected);
    void serverCheck.run();
  });
  const serverCheck = new ServerCheck(redis, log);
  return {
    names,
    redis,
    renewals: options.renewsSeparately
      ? new RedisConnection(besides(client, commandTimeoutMs), commandTimeoutMs, SILENT, () => undefined)
      : redis,
    batch: new LockBatch(redis, names, {
      fenceCounter: names.fence,
      script: LOCKS,
      slot: undefined,
      isNode: options.isNode ?? false,
    }),
    subscriber: () => subscriberOf(client.redis, commandTimeoutMs),
  };
}
