import 'reflect-metadata';
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { rival } from '../rivals/rival.mjs';
import { redlockSettings } from './redlock.mjs';

const { LockService, RedisLockModule } = await import(process.env.BENCH_LIB ?? 'nest-redis-lock');

const DELETE_IF_MINE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
const SHA = createHash('sha1').update(DELETE_IF_MINE).digest('hex');

const clientsOf = (urls) => urls.split(',').map((url) => new Redis(url).on('error', () => undefined));

/** Resolves when a majority has answered; the others are left to themselves. */
function majority(answers) {
  let left = Math.floor(answers.length / 2) + 1;
  return new Promise((resolve, reject) => {
    for (const answer of answers) answer.then(() => --left === 0 && resolve(), reject);
  });
}

/**
 * What a careful person writes by hand: all nodes at once, and on with the majority. No waiting, and nobody looks after
 * what fails.
 */
async function floor(urls, { leaseMs }) {
  const clients = clientsOf(urls);
  await Promise.all(clients.map((redis) => redis.script('LOAD', DELETE_IF_MINE)));
  return {
    async section(key, work) {
      const token = randomUUID();
      await majority(
        clients.map(async (redis) => {
          if ((await redis.set(key, token, 'PX', leaseMs, 'NX')) !== 'OK') throw new Error(`${key} is taken`);
        }),
      );
      try {
        return await work();
      } finally {
        await majority(clients.map((redis) => redis.evalsha(SHA, 1, key, token)));
      }
    },
  };
}

async function ours(urls, { leaseMs }) {
  class App {}
  const imports = [RedisLockModule.forRoot({ connection: urls.split(','), lease: leaseMs, wait: '2m' })];
  const locks = (await NestFactory.createApplicationContext({ module: App, imports }, { logger: false })).get(
    LockService,
  );
  // Nodes that were started less than a lease ago grant nothing.
  while (!(await locks.withLock('probe', () => true).catch(() => false))) await delay(100);
  return { section: (key, work) => locks.withLock(key, work) };
}

async function redlock(urls, settings) {
  const { default: Redlock } = rival('redlock');
  const locks = new Redlock(clientsOf(urls), redlockSettings(settings));
  locks.on('error', () => undefined);
  return {
    async section(key, work) {
      const lock = await locks.acquire([key], settings.leaseMs);
      try {
        return await work();
      } finally {
        await lock.release();
      }
    },
  };
}

/** Keeps its lock object: a new one sends PINGs before its first acquire. */
async function universal(urls, { leaseMs }) {
  const { createRedlock, IoredisAdapter } = rival('redlock-universal');
  const adapters = clientsOf(urls).map((redis) => new IoredisAdapter(redis));
  const lock = createRedlock({
    adapters,
    key: 'account:42',
    ttl: leaseMs,
    quorum: 3,
    retryDelay: 10,
    retryAttempts: 1_000_000,
  });
  return {
    async section(_key, work) {
      const handle = await lock.acquire();
      try {
        return await work();
      } finally {
        await lock.release(handle);
      }
    },
  };
}

export const forms = { floor, ours, redlock, universal };
