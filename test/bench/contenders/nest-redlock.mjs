import { Redis } from 'ioredis';
import { rival } from '../rivals/rival.mjs';
import { decorated } from './decorated.mjs';
import { redlockSettings, withUsing } from './redlock.mjs';

const { Injectable } = rival('@nestjs/common');
const { NestFactory } = rival('@nestjs/core');
const { Redlock, RedlockModule, RedlockService } = rival('@anchan828/nest-redlock');

export const options = 'as redlock, which it wraps; ioredis 6';

class Work {
  async run(key, work) {
    return work();
  }
}

async function boot(url, settings) {
  decorated(
    Work,
    'run',
    Redlock((_target, key) => key),
  );
  Injectable()(Work);
  class App {}
  const imports = [
    RedlockModule.register({
      clients: [new Redis(url)],
      settings: redlockSettings(settings),
      duration: settings.leaseMs,
      isGlobal: true,
    }),
  ];
  return NestFactory.createApplicationContext({ module: App, imports, providers: [Work] }, { logger: ['error'] });
}

async function service(url, settings) {
  const locks = (await boot(url, settings)).get(RedlockService);
  return withUsing((key, work) => locks.using([key], settings.leaseMs, work));
}

async function decorator(url, settings) {
  const work = (await boot(url, settings)).get(Work);
  return { section: (key, inside) => work.run(key, inside) };
}

export const forms = { using: service, '@Redlock': decorator };
