import 'reflect-metadata';
import { createHash, randomUUID } from 'node:crypto';
import { setInterval } from 'node:timers';
import { setTimeout as delay } from 'node:timers/promises';
import { performance } from 'node:perf_hooks';
import { AsyncLocalStorage } from 'node:async_hooks';
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

const TAKE = `
if redis.call('EXISTS', KEYS[2]) == 1 or not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return redis.call('INCR', KEYS[3])
`;
const GIVE_BACK = `
local least = tonumber(ARGV[2])
if least > 0 and least > tonumber(redis.call('GET', KEYS[3])) then redis.call('SET', KEYS[3], least) end
if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`;
const sha = (source) => createHash('sha1').update(source).digest('hex');
const [TAKE_SHA, GIVE_BACK_SHA] = [sha(TAKE), sha(GIVE_BACK)];
const RENEW = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0";
/** As the `commandTimeout` of ours. */
const TIMEOUT_MS = 1000;

/**
 * The least that keeps what a lock of ours promises on a quorum: the largest fence of the majority, to which the release
 * raises the nodes that are behind; a look at the queue; a deadline for each call; a release behind each question, also
 * where its reply is late; renewal; an end by our own clock; and an async context that knows what it holds.
 */
async function whole(urls, { leaseMs }) {
  const clients = clientsOf(urls);
  await Promise.all(clients.flatMap((redis) => [TAKE, GIVE_BACK].map((source) => redis.script('LOAD', source))));
  for (const redis of clients) redis.defineCommand('renewHeld', { numberOfKeys: 1, lua: RENEW });
  const instance = randomUUID();
  const context = new AsyncLocalStorage();
  const held = new Set();
  const fences = clients.map(() => 0);
  const needed = Math.floor(clients.length / 2) + 1;
  const inFlight = new Set();
  let count = 0;

  setInterval(() => {
    const tooOld = performance.now() - TIMEOUT_MS;
    for (const call of inFlight) if (call.askedAt < tooOld) call.reject(new Error('Too few nodes replied in time.'));
  }, TIMEOUT_MS / 20).unref();
  setInterval(() => {
    const sentAt = performance.now();
    for (const lock of held) {
      let kept = 0;
      for (const redis of clients) {
        redis.renewHeld(lock.key, lock.token, leaseMs).then(
          (isOurs) => isOurs && ++kept === needed && (lock.endsAt = sentAt + leaseMs),
          () => undefined,
        );
      }
    }
  }, leaseMs / 3).unref();

  /** Asks all nodes; resolves with what a majority said yes to, and rejects when it no longer can. */
  const ask = (question) =>
    new Promise((resolve, reject) => {
      const call = { askedAt: performance.now(), reject };
      let yes = 0;
      let no = 0;
      let largest = 0;
      const refused = () => {
        if (++no === needed) {
          inFlight.delete(call);
          reject(new Error('A majority refused.'));
        }
      };
      inFlight.add(call);
      clients.forEach((redis, at) =>
        question(redis, at).then((reply) => {
          if (reply === 0) return refused();
          if (reply > largest) largest = reply;
          if (++yes < needed) return;
          inFlight.delete(call);
          resolve(largest);
        }, refused),
      );
    });

  return {
    async section(key, work) {
      if (context.getStore()?.key === key) return work();
      const token = `${instance}.${++count}`;
      const queue = `{${key}}:queue`;
      const askedAt = performance.now();
      const fence = await ask((redis, at) =>
        redis
          .evalsha(TAKE_SHA, 3, key, queue, '{}:fence', token, leaseMs)
          .then((given) => (given > fences[at] ? (fences[at] = given) : given)),
      );
      const lock = { key, token, fence, endsAt: askedAt + leaseMs * 0.99 - 2 };
      held.add(lock);
      try {
        if (performance.now() > lock.endsAt) throw new Error(`${key} is lost`);
        return await context.run(lock, work, lock);
      } finally {
        held.delete(lock);
        await ask((redis, at) => {
          const raiseTo = fences[at] < fence ? (fences[at] = fence) : 0;
          return redis.evalsha(GIVE_BACK_SHA, 3, key, queue, '{}:fence', token, raiseTo);
        });
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

export const forms = { floor, whole, ours, redlock, universal };
