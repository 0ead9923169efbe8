import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { decorated } from './decorated.mjs';

const { LockService, RedisLockModule, WithLock } = await import(process.env.BENCH_LIB ?? 'nest-redis-lock');

export const options = 'defaults, but wait 2 min, and commandTimeout 10 s for busy machines; ioredis 6';

class Work {
  run(key, work) {
    return work();
  }
}

async function boot(url, { leaseMs }) {
  decorated(Work, 'run', WithLock('<key>'));
  Injectable()(Work);
  class App {}
  const imports = [RedisLockModule.forRoot({ connection: url, lease: leaseMs, wait: '2m', commandTimeout: '10s' })];
  return NestFactory.createApplicationContext({ module: App, imports, providers: [Work] }, { logger: ['error'] });
}

async function service(url, settings) {
  const locks = (await boot(url, settings)).get(LockService);
  return {
    section: (key, work) => locks.withLock(key, work),
    hold: (key) => locks.lock(key),
  };
}

const FAIR = Object.freeze({ fair: true });

async function fair(url, settings) {
  const locks = (await boot(url, settings)).get(LockService);
  await locks.withLock('probe', () => undefined, FAIR);
  return { section: (key, work) => locks.withLock(key, work, FAIR) };
}

async function decorator(url, settings) {
  const work = (await boot(url, settings)).get(Work);
  return { section: (key, inside) => work.run(key, inside) };
}

export const forms = { withLock: service, 'fair: true': fair, '@WithLock': decorator };
