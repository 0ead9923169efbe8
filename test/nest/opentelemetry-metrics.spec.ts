import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import { getLockServiceToken, LockOptionsError, LockService } from 'nest-redis-lock';
import { LockOpenTelemetryModule } from 'nest-redis-lock/opentelemetry';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { closeWhileWaiting } from '../support/close-while-waiting.js';
import { turn } from '../support/deferred.js';

Logger.overrideLogger(false);

let exporter: InMemoryMetricExporter;
let provider: MeterProvider;
const open: TestingModule[] = [];

beforeEach(() => {
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  provider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] });
});

afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
  await provider.shutdown();
  metrics.disable();
});

async function start(imports: NonNullable<ModuleMetadata['imports']>): Promise<TestingModule> {
  const app = await Test.createTestingModule({ imports }).compile();
  open.push(app);
  return app.init();
}

/** All that was exported now: the metrics by name. */
async function exported() {
  exporter.reset();
  await provider.forceFlush();
  const [{ scopeMetrics }] = exporter.getMetrics() as [ResourceMetrics];
  expect(scopeMetrics.map(({ scope }) => scope.name)).toEqual(['nest-redis-lock']);
  return new Map(scopeMetrics[0]!.metrics.map((metric) => [metric.descriptor.name, metric]));
}

describe('The metrics for OpenTelemetry', () => {
  it('they have the names, units and buckets of this library, and attributes without keys', async () => {
    metrics.setGlobalMeterProvider(provider);
    const app = await start([
      LockTestingModule.forRoot(),
      LockTestingModule.forRoot({ name: 'billing' }),
      LockOpenTelemetryModule,
    ]);
    const [locks, billing] = [app.get(LockService), app.get<LockService>(getLockServiceToken('billing'))];
    const held = await locks.lock('customer-1', { label: 'withdraw' });
    await held.extend();
    const waiter = locks.lock('customer-1', { label: 'withdraw' });
    await turn();
    expect(await locks.tryLock('customer-1', { label: 'withdraw' })).toBeNull();
    const during = await exported();
    await held.unlock();
    await (await waiter).unlock();
    await billing.withLock('customer-2', () => undefined);
    const after = await exported();

    expect([...after.values()].map(({ descriptor: { name, unit } }) => [name, unit])).toEqual([
      ['nest_redis_lock.acquire.duration', 's'],
      ['nest_redis_lock.hold.duration', 's'],
      ['nest_redis_lock.lost', '{loss}'],
      ['nest_redis_lock.held', '{lock}'],
      ['nest_redis_lock.waiting', '{call}'],
      ['nest_redis_lock.lease.margin', 's'],
    ]);
    const pointsOf = (name: string, of = after) => of.get(name)!.dataPoints as DataPoint<Histogram>[];
    const label = 'withdraw';
    const mode = 'exclusive';
    expect(
      pointsOf('nest_redis_lock.acquire.duration').map(({ attributes, value }) => [attributes, value.count]),
    ).toEqual([
      [{ label, mode, queued: false }, 1],
      [{ label, mode, queued: false, 'error.type': 'busy' }, 1],
      [{ label, mode, queued: true }, 1],
      [{ label: 'other', mode, queued: false, module: 'billing' }, 1],
    ]);
    const { boundaries } = pointsOf('nest_redis_lock.hold.duration')[0]!.value.buckets;
    expect([boundaries[0], boundaries.at(-1), boundaries.length]).toEqual([0.0005, 1800, 20]);
    expect(pointsOf('nest_redis_lock.held', during).map(({ value }) => value)).toEqual([1]);
    expect(pointsOf('nest_redis_lock.waiting', during).map(({ value }) => value)).toEqual([1]);
    expect(pointsOf('nest_redis_lock.held').map(({ value }) => value)).toEqual([0, 0]);
    expect(pointsOf('nest_redis_lock.waiting').map(({ value }) => value)).toEqual([0]);
    expect(pointsOf('nest_redis_lock.lost').map(({ value }) => value)).toEqual([0, 0, 0, 0]);
    expect(pointsOf('nest_redis_lock.lease.margin')[0]!.value.sum).toBeGreaterThan(15);
    expect(JSON.stringify([...after.values()])).not.toContain('customer');
  });

  it('a call that is refused because the app shuts down has the error type "shutdown"', async () => {
    const app = await start([
      LockTestingModule.forRoot(),
      LockOpenTelemetryModule.forRoot({ meterProvider: provider }),
    ]);
    await closeWhileWaiting(app);
    const { dataPoints } = (await exported()).get('nest_redis_lock.acquire.duration')!;
    expect(dataPoints.map(({ attributes }) => attributes['error.type'])).toEqual([undefined, 'shutdown', 'shutdown']);
  });

  it('a meter provider can be given, and the number of labels limited; two imports count once', async () => {
    const module = () => LockOpenTelemetryModule.forRoot({ meterProvider: provider, maxLabels: 1 });
    const app = await start([LockTestingModule.forRoot(), module(), module()]);
    for (const label of ['a', 'b', 'c']) await app.get(LockService).withLock('job', () => undefined, { label });
    const { dataPoints } = (await exported()).get('nest_redis_lock.hold.duration')!;
    expect(dataPoints.map(({ attributes, value }) => [attributes['label'], (value as Histogram).count])).toEqual([
      ['a', 1],
      ['other', 2],
    ]);
  });

  it('without an SDK, locks work as ever', async () => {
    const app = await start([LockTestingModule.forRoot(), LockOpenTelemetryModule]);
    await expect(app.get(LockService).withLock('job', () => 'done')).resolves.toBe('done');
  });

  it.each([
    ['an unknown option', { meter: 1 }, /no option "meter"/],
    ['a provider that is none', { meterProvider: {} }, /must be a MeterProvider/],
  ])('the app does not boot with %s', async (_what, options, text) => {
    const booting = start([LockTestingModule.forRoot(), LockOpenTelemetryModule.forRoot(options as object)]);
    await expect(booting).rejects.toThrow(LockOptionsError);
    await expect(booting).rejects.toThrow(text);
  });
});
