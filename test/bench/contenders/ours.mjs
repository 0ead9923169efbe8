import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { decorated } from './decorated.mjs';

const { LockService, RedisLockModule, WithLock } = await import(process.env.BENCH_LIB ?? 'nest-redis-lock');

export const options =
  'defaults, but wait 2 min, and commandTimeout 10 s for busy machines; ioredis 6, and 5 where a row says so';

class Work {
  run(key, work) {
    return work();
  }
}

/** Another entry point of the same build. */
function entry(name) {
  const build = process.env.BENCH_LIB;
  return import(build ? new URL(`${name}/index.js`, pathToFileURL(build)) : `nest-redis-lock/${name}`);
}

async function memoryStore() {
  const { MemoryLockStore } = await entry('testing');
  return new MemoryLockStore();
}

/** Without a URL, locks live in memory. */
async function boot(url, { leaseMs }, more = {}, modules = []) {
  decorated(Work, 'run', WithLock('<key>'));
  Injectable()(Work);
  class App {}
  const place = url ? { connection: url } : { store: await memoryStore() };
  const locks = RedisLockModule.forRoot({ ...place, lease: leaseMs, wait: '2m', commandTimeout: '10s', ...more });
  const imports = [locks, ...modules];
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

/** A lock of which somebody hears, or which is reported when it is held for too long. */
const watched =
  ({ isHeard, ...more }) =>
  async (url, settings) => {
    const locks = (await boot(url, settings, more)).get(LockService);
    let heard = 0;
    if (isHeard) locks.events.subscribe(() => heard++);
    return { section: (key, work) => locks.withLock(key, work) };
  };

/** Locks that a module measures or traces. */
const measuredBy = (module) => async (url, settings) => {
  const locks = (await boot(url, settings, {}, [await module()])).get(LockService);
  return { section: (key, work) => locks.withLock(key, work) };
};

const prometheus = async () => (await entry('prometheus')).LockPrometheusModule;

/** With the SDK of OpenTelemetry, whose spans and metrics go nowhere. */
const openTelemetry = (options) => async () => {
  const { context } = await import('@opentelemetry/api');
  const { AsyncLocalStorageContextManager } = await import('@opentelemetry/context-async-hooks');
  const { MeterProvider, MetricReader } = await import('@opentelemetry/sdk-metrics');
  const { BatchSpanProcessor, TracerProvider } = await import('@opentelemetry/sdk-trace');
  class Reader extends MetricReader {
    async onForceFlush() {}
    async onShutdown() {}
  }
  const exporter = { export: (_spans, done) => done({ code: 0 }), shutdown: async () => {} };
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  return (await entry('opentelemetry')).LockOpenTelemetryModule.forRoot({
    meterProvider: new MeterProvider({ readers: [new Reader()] }),
    tracerProvider: new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter })] }),
    ...options,
  });
};

/** A grant counts when so many replicas have it. */
const durable = (replicas) => async (url, settings) => {
  const locks = (await boot(url, settings, { durability: { replicas, timeout: '1s' } })).get(LockService);
  // A master that was started less than a lease ago grants nothing.
  while (!(await locks.withLock('probe', () => true).catch(() => false))) await delay(100);
  return { section: (key, work) => locks.withLock(key, work) };
};

export const forms = {
  withLock: service,
  'durability: 1': durable(1),
  'durability: 2': durable(2),
  'fair: true': fair,
  'a subscriber': watched({ isHeard: true }),
  warnAfter: watched({ warnAfter: '30s' }),
  'a subscriber and warnAfter': watched({ isHeard: true, warnAfter: '30s' }),
  LockPrometheusModule: measuredBy(prometheus),
  'LockOpenTelemetryModule, metrics': measuredBy(openTelemetry({ traces: false })),
  'LockOpenTelemetryModule, metrics and spans': measuredBy(openTelemetry({})),
  '@WithLock': decorator,
};
