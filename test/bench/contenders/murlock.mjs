import { rival } from '../rivals/rival.mjs';
import { decorated } from './decorated.mjs';

// Nest beside murlock, not the one of this package: a class of Nest is only known to its own copy.
const { Injectable } = rival('@nestjs/common');
const { NestFactory } = rival('@nestjs/core');
const { MurLock, MurLockModule, MurLockService } = rival('murlock');

export const options = 'wait 10 ms, blocking; not renewed; node-redis 4 (its own)';

class Work {
  async run(key, work) {
    return work();
  }
}

async function boot(url, { leaseMs }) {
  decorated(Work, 'run', MurLock(leaseMs, 'key'));
  Injectable()(Work);
  class App {}
  const imports = [
    MurLockModule.forRoot({ redisOptions: { url }, wait: 10, maxAttempts: 1, blocking: true, logLevel: 'none' }),
  ];
  return NestFactory.createApplicationContext({ module: App, imports, providers: [Work] }, { logger: ['error'] });
}

async function service(url, settings) {
  const locks = (await boot(url, settings)).get(MurLockService);
  return { section: (key, work) => locks.runWithLock(key, settings.leaseMs, work) };
}

async function decorator(url, settings) {
  const work = (await boot(url, settings)).get(Work);
  return { section: (key, inside) => work.run(key, inside) };
}

export const forms = { runWithLock: service, '@MurLock': decorator };
