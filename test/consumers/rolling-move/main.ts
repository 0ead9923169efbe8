// A rolling move: nodes that lock with murlock, redlock or @Redlock, and nodes that lock with this package, exclude
// each other on one key.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import type { DynamicModule, Type } from '@nestjs/common';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { MurLock, MurLockModule } from 'murlock';
import { RedisLockModule, WithLock } from 'nest-redis-lock';

// The ES modules of these can't be imported by Node.
const require = createRequire(import.meta.url);
const { Redlock, RedlockModule } = require('@anchan828/nest-redlock');
const { default: Redlock5 } = require('redlock');
const Redlock4 = require('redlock-4');

const url = process.env['REDIS_URL'] ?? '';
const LEASE_MS = 5000;

/** What murlock makes of the class, the method and the account. */
const KEY = 'AccountService:run:42';

type Work = () => Promise<unknown>;

/** A process of the app, as it is before or after the move. */
interface Node {
  readonly name: string;
  /** Runs work that excludes all others that run for this account. */
  run(account: string, work: Work): Promise<unknown>;
  close(): Promise<unknown>;
}

/** @param patient whether a caller waits for its turn, or gives up at once */
type Start = (patient: boolean) => Promise<Node>;

async function startApp(name: string, locks: DynamicModule, service: Type<Pick<Node, 'run'>>): Promise<Node> {
  @Module({ imports: [locks], providers: [service] })
  class AppModule {}

  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
  return { name, run: (account, work) => app.get(service).run(account, work), close: () => app.close() };
}

const murlock: Start = (patient) => {
  @Injectable()
  class AccountService {
    @MurLock(LEASE_MS, 'account')
    async run(account: string, work: Work): Promise<unknown> {
      return work();
    }
  }
  const locks = MurLockModule.forRoot({
    redisOptions: { url },
    wait: 10,
    maxAttempts: 1,
    blocking: patient,
    logLevel: 'none',
  });
  return startApp('murlock', locks, AccountService);
};

const redlockSettings = (patient: boolean) => ({ retryCount: patient ? -1 : 0, retryDelay: 10, retryJitter: 10 });

const redlock5: Start = async (patient) => {
  const redlock = new Redlock5([new Redis(url)], redlockSettings(patient));
  return {
    name: 'redlock 5',
    run: (account, work) => redlock.using([`AccountService:run:${account}`], LEASE_MS, work),
    close: () => redlock.quit(),
  };
};

const redlock4: Start = async (patient) => {
  const redlock = new Redlock4([new Redis(url)], redlockSettings(patient));
  const run = async (account: string, work: Work) => {
    const lock = await redlock.lock(`AccountService:run:${account}`, LEASE_MS);
    try {
      return await work();
    } finally {
      await lock.unlock();
    }
  };
  return { name: 'redlock 4', run, close: () => redlock.quit() };
};

const atRedlock: Start = (patient) => {
  @Injectable()
  class Accounts {
    @Redlock((_self: Accounts, account: string) => `AccountService:run:${account}`)
    async run(_account: string, work: Work): Promise<unknown> {
      return work();
    }
  }
  const locks = RedlockModule.register({
    clients: [new Redis(url)],
    settings: redlockSettings(patient),
    duration: LEASE_MS,
    isGlobal: true,
  });
  return startApp('@Redlock', locks, Accounts);
};

const moved: Start = (patient) => {
  @Injectable()
  class AccountService {
    @WithLock('AccountService:run:<account>')
    async run(account: string, work: Work): Promise<unknown> {
      return work();
    }
  }
  return startApp(
    'nest-redis-lock',
    RedisLockModule.forRoot({ connection: url, keyPrefix: '', wait: patient ? '20s' : 0 }),
    AccountService,
  );
};

/** Whoever is inside keeps each of them out, and lets it in afterwards. */
async function excludeEachOther(nodes: readonly Node[], redis: Redis): Promise<void> {
  for (const holder of nodes) {
    const others = nodes.filter((node) => node !== holder);
    await holder.run('42', async () => {
      assert.equal(await redis.type(KEY), 'string', `${holder.name} has another key`);
      for (const other of others) {
        const run = other.run('42', async () => 'inside');
        await assert.rejects(run, `${other.name} came in while ${holder.name} was inside`);
      }
    });
    for (const other of others)
      assert.equal(await other.run('42', async () => 'inside'), 'inside', `${other.name} after ${holder.name}`);
  }
}

/** All at once, and no withdrawal is lost. */
async function loseNoUpdate(nodes: readonly Node[]): Promise<void> {
  let balance = 1000;
  const withdraw = async () => {
    const before = balance;
    await setTimeout(1);
    balance = before - 1;
  };
  const calls = nodes.flatMap((node) => Array.from({ length: 10 }, () => node.run('42', withdraw)));
  await Promise.all(calls);
  assert.equal(balance, 1000 - calls.length);
}

async function withNodes(patient: boolean, work: (nodes: readonly Node[]) => Promise<void>): Promise<void> {
  const nodes = await Promise.all([murlock, redlock5, redlock4, atRedlock, moved].map((start) => start(patient)));
  await work(nodes);
  for (const node of nodes) await node.close();
}

async function main(): Promise<void> {
  const redis = new Redis(url);
  await withNodes(false, (nodes) => excludeEachOther(nodes, redis));
  await withNodes(true, loseNoUpdate);
  await redis.quit();
  console.log('works');
}

void main();
