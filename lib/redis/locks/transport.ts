import type { Redis } from 'ioredis';
import type { Connection } from '../connection/connection.js';
import type { RedisConnectionOption } from '../connection/connection-option.js';
import { SILENT, type OutageLog } from '../connection/outage-log.js';
import { besides, subscriberOf } from '../connection/further-client.js';
import { redisClient } from '../connection/redis-client.js';
import { RedisConnection } from '../connection/redis-connection.js';
import { ServerCheck } from '../connection/server-check.js';
import { LOCKS } from '../lua/locks.script.js';
import { KeyNames } from '../wire/key-names.js';
import { LockBatch } from './lock-batch.js';

/** Where a store's Redis is, and how to talk to it. */
export interface TransportOptions {
  readonly connection: RedisConnectionOption;
  readonly keyPrefix: string;
  readonly commandTimeoutMs: number;
  readonly log: OutageLog;
  /** Whether grants wait for replicas, or for a disk. */
  readonly isDurable?: boolean;
  /** Whether it is one of the nodes of a quorum. */
  readonly isNode?: boolean;
}

/** Sends the operations of one tick together. */
export type Operations = Pick<LockBatch, 'add' | 'raise' | 'close'>;

/** All that a store needs to talk to its Redis. */
export interface Transport {
  readonly names: KeyNames;
  readonly redis: Connection;
  /** The connection for renewals: the same, unless they go over one of their own. */
  readonly renewals: Connection;
  readonly batch: Operations;
  readonly log: OutageLog;
  /** Makes a separate connection for a subscription; undefined while no server is known. */
  readonly subscriber: () => Redis | undefined;
  /** Begins to connect, unless the app lends its client. If that is connected by now, its server is checked. */
  open(): void;
  /** Calls back whenever a connection was made: the first, or a later one (`reconnected`). */
  onConnected(callback: OnConnected): void;
  /** Calls back when Redis has run a script on a new connection, but its reply came too late for a call. */
  onSlow(callback: () => void): void;
}

export type OnConnected = (reconnected: boolean) => void;

const UNHEARD = { ready: () => undefined, isSlow: () => undefined };

/** Makes the transport to one Redis. */
export function connectToRedis(options: TransportOptions): Transport {
  const { commandTimeoutMs, log } = options;
  const given = redisClient(options.connection, commandTimeoutMs);
  // `WAIT` holds up all that comes after it: renewals, and the commands of an app that lends its client.
  const beside = () => besides(given, commandTimeoutMs);
  const client = options.isDurable && given.borrowed ? beside() : given;
  const names = new KeyNames(options.keyPrefix);
  const connected: OnConnected[] = [];
  const slow: (() => void)[] = [];
  const redis = new RedisConnection(client, commandTimeoutMs, log, {
    ready: (reconnected) => {
      for (const callback of connected) callback(reconnected);
      void serverCheck.run();
    },
    isSlow: () => {
      for (const callback of slow) callback();
    },
  });
  const serverCheck = new ServerCheck(redis, log);
  const renewals = options.isDurable ? new RedisConnection(beside(), commandTimeoutMs, SILENT, UNHEARD) : redis;
  return {
    names,
    redis,
    renewals,
    batch: new LockBatch(redis, names, {
      fenceCounter: names.fence,
      script: LOCKS,
      slot: undefined,
      isNode: options.isNode ?? false,
    }),
    log,
    subscriber: () => subscriberOf(given, commandTimeoutMs),
    open: () => {
      redis.open();
      renewals.open();
      if (client.redis.status === 'ready') void serverCheck.run();
    },
    onConnected: (callback) => void connected.push(callback),
    onSlow: (callback) => void slow.push(callback),
  };
}
