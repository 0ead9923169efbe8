import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger, Module, type ModuleMetadata, type OnModuleInit } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { getLockServiceToken, LockOptionsError, LockService, RedisLockModule, WithLock } from 'nest-redis-lock';
import { LockPrometheusModule } from 'nest-redis-lock/prometheus';
import { LockTestingModule, MemoryLockStore, TestLockService } from 'nest-redis-lock/testing';
import { Counter, register, Registry } from 'prom-client';
import { closeWhileWaiting } from '../support/close-while-waiting.js';
import { deferred, turn, until } from '../support/deferred.js';

Logger.overrideLogger(false);

@Injectable()
class Accounts {
  @WithLock('account:<id>', { label: 'withdraw' })
  async withdraw(id: string, work: (id: string) => unknown = () => undefined): Promise<unknown> {
    return work(id);
  }

  @WithLock('account:<id>', { mode: 'read' })
  async read(id: string): Promise<string> {
    return id;
  }
}

const open: TestingModule[] = [];

afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
  register.clear();
  jest.restoreAllMocks();
});

async function start(metadata: ModuleMetadata): Promise<TestingModule> {
  const app = await Test.createTestingModule({ providers: [Accounts], ...metadata }).compile();
  open.push(app);
  return app.init();
}

/** What a registry has of a metric: the value of each series, by its labels. */
async function seriesOf(name: string, registry: Registry = register): Promise<Record<string, number>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith(`${name}{`));
  return Object.fromEntries(
    lines.map((line) => [
      line.slice(name.length, line.lastIndexOf(' ')),
      Number(line.slice(line.lastIndexOf(' ') + 1)),
    ]),
  );
}

const counted = (series: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(series).filter(([, value]) => value !== 0));

describe('The metrics for Prometheus', () => {
  it('the gauges count right again after somebody has reset the registry', async () => {
    const app = await start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule] });
    const inside = deferred();
    const call = app.get(Accounts).withdraw('1', () => inside.promise);
    await turn();
    register.resetMetrics();
    inside.resolve();
    await call;
    expect(counted(await seriesOf('nest_redis_lock_held'))).toEqual({});
  });

  it('one import measures how long calls take, why they fail, and how long locks are held', async () => {
    const app = await start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule] });
    const [accounts, locks] = [app.get(Accounts), app.get(TestLockService)];
    const inside = deferred();
    const first = accounts.withdraw('1', () => inside.promise);
    const second = accounts.withdraw('1');
    await turn();
    expect(await seriesOf('nest_redis_lock_held')).toEqual({ '{label="withdraw",mode="exclusive"}': 1 });
    expect(await seriesOf('nest_redis_lock_waiting')).toEqual({ '{label="withdraw",mode="exclusive"}': 1 });
    inside.resolve();
    await Promise.all([first, second, accounts.read('2')]);
    locks.simulate({ busy: 'account:1' });
    await expect(accounts.withdraw('1')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    locks.simulate({ down: true });
    await expect(accounts.withdraw('1')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    locks.reset();
    const held = await locks.lock('3');
    const abort = new AbortController();
    const aborted = locks.lock('3', { signal: abort.signal });
    await turn();
    abort.abort();
    await expect(aborted).rejects.toBe(abort.signal.reason);
    await locks.forceUnlock('3');
    await held.unlock();

    expect(await seriesOf('nest_redis_lock_acquire_duration_seconds_count')).toEqual({
      '{label="withdraw",mode="exclusive",queued="false"}': 1,
      '{label="withdraw",mode="exclusive",queued="true"}': 1,
      '{label="Accounts.read",mode="read",queued="false"}': 1,
      '{label="withdraw",mode="exclusive",queued="false",error_type="busy"}': 1,
      '{label="withdraw",mode="exclusive",queued="false",error_type="unavailable"}': 1,
      '{label="other",mode="exclusive",queued="false"}': 1,
      '{label="other",mode="exclusive",queued="true",error_type="aborted"}': 1,
    });
    expect(await seriesOf('nest_redis_lock_hold_duration_seconds_count')).toEqual({
      '{label="withdraw",mode="exclusive"}': 2,
      '{label="Accounts.read",mode="read"}': 1,
      '{label="other",mode="exclusive",error_type="taken"}': 1,
    });
    expect(counted(await seriesOf('nest_redis_lock_held'))).toEqual({});
    expect(counted(await seriesOf('nest_redis_lock_waiting'))).toEqual({});
  });

  it('calls that an app refuses because it shuts down are told apart from an outage', async () => {
    const app = await start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule] });
    await closeWhileWaiting(app);
    expect(await seriesOf('nest_redis_lock_acquire_duration_seconds_count')).toEqual({
      '{label="other",mode="exclusive",queued="false"}': 1,
      '{label="other",mode="exclusive",queued="true",error_type="shutdown"}': 1,
      '{label="other",mode="exclusive",queued="false",error_type="shutdown"}': 1,
    });
  });

  it('durations are in seconds, in buckets from half a millisecond to half an hour', async () => {
    const app = await start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule] });
    const startedAt = performance.now();
    await app.get(Accounts).withdraw('1', () => new Promise((resolve) => setTimeout(resolve, 20)));
    const tookSeconds = (performance.now() - startedAt) / 1000;
    const sum = Object.values(await seriesOf('nest_redis_lock_hold_duration_seconds_sum'))[0]!;
    expect(sum).toBeGreaterThanOrEqual(0.018);
    expect(sum).toBeLessThanOrEqual(tookSeconds + 0.002);
    const bounds = Object.keys(await seriesOf('nest_redis_lock_hold_duration_seconds_bucket')).map(
      (labels) => /le="([^"]+)"/.exec(labels)![1],
    );
    expect([bounds[0], ...bounds.slice(-2)]).toEqual(['0.0005', '1800', '+Inf']);
  });

  it('the margin of the lease is measured at each renewal', async () => {
    const app = await start({
      imports: [LockTestingModule.forRoot({ lease: '30s', shutdownGrace: 0 }), LockPrometheusModule],
    });
    const lock = await app.get(LockService).lock('job', { label: 'nightly' });
    await lock.extend();
    const margin = (await seriesOf('nest_redis_lock_lease_margin_seconds_sum'))['{label="nightly",mode="exclusive"}'];
    expect(margin).toBeGreaterThan(15);
    expect(margin).toBeLessThanOrEqual(30);
  });

  it('nested calls hold nothing of their own, and a downgraded lock leaves the gauge as what it came', async () => {
    const app = await start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule] });
    const accounts = app.get(Accounts);
    await accounts.withdraw('1', () =>
      accounts.withdraw('1', async () =>
        expect(await seriesOf('nest_redis_lock_held')).toEqual({ '{label="withdraw",mode="exclusive"}': 1 }),
      ),
    );
    await app.get(LockService).withLock('2', (lock) => lock.downgrade());
    expect(Object.values(await seriesOf('nest_redis_lock_hold_duration_seconds_count'))).toEqual([1, 1]);
    expect(await seriesOf('nest_redis_lock_held')).toEqual({
      '{label="withdraw",mode="exclusive"}': 0,
      '{label="other",mode="exclusive"}': 0,
    });
  });

  it('all modules are measured, also a lazy one, each with its name unless it is the default one', async () => {
    @Module({ imports: [RedisLockModule.forRoot({ name: 'lazy', store: new MemoryLockStore() })] })
    class LazyModule {}
    const app = await start({
      imports: [LockTestingModule.forRoot(), LockTestingModule.forRoot({ name: 'billing' }), LockPrometheusModule],
    });
    const lazy = await app.get(LazyModuleLoader).load(() => LazyModule);
    const named = (name?: string): LockService => lazy.get(getLockServiceToken(name), { strict: false });
    for (const locks of [named(), named('billing'), named('lazy')])
      await locks.withLock('job', () => undefined, { label: 'job' });
    expect(await seriesOf('nest_redis_lock_hold_duration_seconds_count')).toEqual({
      '{label="job",mode="exclusive"}': 1,
      '{label="job",mode="exclusive",module="billing"}': 1,
      '{label="job",mode="exclusive",module="lazy"}': 1,
    });
  });

  it('losses are counted from 0, which is there from the first lock of a label on', async () => {
    const app = await start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule] });
    const locks = app.get(LockService);
    const lock = await locks.lock('report', { label: 'nightly' });
    const losses = (taken: number) => ({
      '{label="nightly",mode="exclusive",error_type="expired"}': 0,
      '{label="nightly",mode="exclusive",error_type="taken"}': taken,
    });
    expect(await seriesOf('nest_redis_lock_lost_total')).toEqual(losses(0));
    await locks.forceUnlock('report');
    await until(() => !lock.isHeld);
    expect(await seriesOf('nest_redis_lock_lost_total')).toEqual(losses(1));
    await locks.withLock('report', () => undefined, { label: 'nightly' });
    expect(await seriesOf('nest_redis_lock_lost_total')).toEqual(losses(1));
  });

  it('locks are measured that the hooks of other modules take at boot', async () => {
    @Injectable()
    class Migrations implements OnModuleInit {
      constructor(readonly locks: LockService) {}

      async onModuleInit(): Promise<void> {
        await this.locks.withLock('migrations', () => undefined, { label: 'migrations' });
      }
    }
    @Module({ providers: [Migrations] })
    class MigrationsModule {}
    await start({ imports: [MigrationsModule, LockTestingModule.forRoot(), LockPrometheusModule] });
    expect(await seriesOf('nest_redis_lock_hold_duration_seconds_count')).toEqual({
      '{label="migrations",mode="exclusive"}': 1,
    });
  });
});

describe('The number of time series for Prometheus', () => {
  it('it does not grow with the keys: 100,000 of them make one series, and none is in the metrics', async () => {
    const app = await start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule] });
    const locks = app.get(LockService);
    const accounts = app.get(Accounts);
    const keys = Array.from({ length: 100_000 }, (_, index) => `customer-${index}`);
    await Promise.all(keys.slice(0, 5_000).map((key) => accounts.withdraw(key)));
    await Promise.all(keys.slice(5_000, 6_000).map((key) => locks.withLock(key, () => undefined)));
    for (let from = 6_000; from < keys.length; from += 100)
      await locks.withLock(keys.slice(from, from + 100), () => undefined);
    expect(await seriesOf('nest_redis_lock_hold_duration_seconds_count')).toEqual({
      '{label="withdraw",mode="exclusive"}': 5_000,
      '{label="other",mode="exclusive"}': 1_940,
    });
    const metrics = await register.metrics();
    expect(metrics).not.toContain('customer');
    expect(metrics.split('\n').length).toBeLessThan(200);
  });

  it('it does not grow with labels by hand: those above the limit count as "other", and one log line says so', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const app = await start({
      imports: [LockTestingModule.forRoot(), LockPrometheusModule.forRoot({ maxLabels: 2 })],
    });
    const locks = app.get(LockService);
    for (const label of ['a', 'b', 'c', 'd', 'a']) await locks.withLock('job', () => undefined, { label });
    expect(await seriesOf('nest_redis_lock_hold_duration_seconds_count')).toEqual({
      '{label="a",mode="exclusive"}': 2,
      '{label="b",mode="exclusive"}': 1,
      '{label="other",mode="exclusive"}': 2,
    });
    expect(warn.mock.calls.filter(([line]) => String(line).includes('labels'))).toEqual([
      [expect.stringMatching(/more than 2 labels.*"c".*"maxLabels"/)],
    ]);
  });
});

describe('The gauges for Prometheus', () => {
  const gauges = async (registry?: Registry) => [
    counted(await seriesOf('nest_redis_lock_held', registry)),
    counted(await seriesOf('nest_redis_lock_waiting', registry)),
  ];

  it('they do not count the end of what began before they were there', async () => {
    const app = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot(), LockPrometheusModule],
    }).compile();
    open.push(app);
    const locks = app.get(LockService);
    const early = await locks.lock('job');
    const waiter = locks.lock('job');
    await turn();
    await app.init();
    const late = await locks.lock('other job');
    await early.unlock();
    await (await waiter).unlock();
    await late.unlock();
    expect(await seriesOf('nest_redis_lock_held')).toEqual({ '{label="other",mode="exclusive"}': 0 });
    expect(await seriesOf('nest_redis_lock_waiting')).toEqual({});
  });

  it('they are zero when an app has closed with locks that are held and waited for', async () => {
    const app = await start({ imports: [LockTestingModule.forRoot({ shutdownGrace: 0 }), LockPrometheusModule] });
    const locks = app.get(LockService);
    await locks.lock('job');
    const waiter = locks.lock('job');
    await turn();
    expect(await gauges()).toEqual([
      { '{label="other",mode="exclusive"}': 1 },
      { '{label="other",mode="exclusive"}': 1 },
    ]);
    await Promise.all([expect(waiter).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' }), app.close()]);
    expect(await gauges()).toEqual([{}, {}]);
  });

  it('several apps share a registry, as with hot reloading, and two imports count once', async () => {
    const registry = new Registry();
    const imports = () => [LockTestingModule.forRoot({ shutdownGrace: 0 }), LockPrometheusModule.forRoot({ registry })];
    const [old, fresh] = [
      await start({ imports: imports() }),
      await start({ imports: [...imports(), ...imports().slice(1)] }),
    ];
    await old.get(LockService).lock('job');
    await fresh.get(LockService).lock('job');
    expect(await gauges(registry)).toEqual([{ '{label="other",mode="exclusive"}': 2 }, {}]);
    await old.close();
    expect(await gauges(registry)).toEqual([{ '{label="other",mode="exclusive"}': 1 }, {}]);
    expect(await register.metrics()).not.toContain('nest_redis_lock');
  });
});

describe('LockPrometheusModule', () => {
  it('forRootAsync() takes the registry from the app', async () => {
    const registry = new Registry();
    const imports = [
      LockTestingModule.forRoot(),
      LockPrometheusModule.forRootAsync({ useFactory: () => ({ registry }) }),
    ];
    const app = await start({ imports });
    await app.get(Accounts).read('1');
    expect(Object.keys(await seriesOf('nest_redis_lock_hold_duration_seconds_count', registry))).toHaveLength(1);
  });

  it('the app boots without any lock module', async () => {
    await start({ imports: [LockPrometheusModule], providers: [] });
    expect(await register.metrics()).toContain('nest_redis_lock_held');
  });

  it.each([
    ['an unknown option', { registr: register }, /"registr".*"registry"/],
    ['a registry that is none', { registry: {} }, /"registry" is .* must be a Registry of prom-client/],
    ['a wrong number of labels', { maxLabels: 0 }, /"maxLabels" is 0/],
    ['a number of labels that is text', { maxLabels: '200' as never }, /"maxLabels" is "200", but must be a whole/],
  ])('the app does not boot with %s', async (_what, options, text) => {
    const booting = start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule.forRoot(options as object)] });
    await expect(booting).rejects.toThrow(LockOptionsError);
    await expect(booting).rejects.toThrow(text);
  });

  it('the app does not boot on a registry that has another metric of that name', async () => {
    new Counter({ name: 'nest_redis_lock_held', help: 'not ours' });
    await expect(start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule] })).rejects.toThrow(
      /another metric with the name "nest_redis_lock_held"/,
    );
  });

  it('what the metrics throw stays away from the calls, and is logged once', async () => {
    const error = jest.spyOn(Logger.prototype, 'error').mockReturnValue();
    const app = await start({ imports: [LockTestingModule.forRoot(), LockPrometheusModule] });
    const broken = (): never => {
      throw new Error('no metrics today');
    };
    for (const name of ['acquire_duration_seconds', 'held'])
      Object.assign(register.getSingleMetric(`nest_redis_lock_${name}`)!, { observe: broken, inc: broken });
    for (const key of ['1', '2']) await expect(app.get(Accounts).read(key)).resolves.toBe(key);
    expect(error.mock.calls.filter(([line]) => String(line).includes('can not be measured'))).toHaveLength(1);
  });
});
