import { afterEach, expect, it } from '@jest/globals';
import type { LockEvent } from 'nest-redis-lock';
import { Registry } from 'prom-client';
import { LockMeter } from '../../lib/metrics/lock-meter.js';
import { prometheusInstruments } from '../../lib/prometheus/prometheus-instruments.js';
import { ALIVE_MS } from '../../lib/store/lock-store.js';
import { until } from '../support/deferred.js';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

let url: string;
withRedis(({ server }) => (url = server.url));
const open: ClosableLockService[] = [];

afterEach(async () => {
  for (const service of open.splice(0)) await service.close();
});

/** A service with a connection and a wake channel of its own, as in another process. */
function process(): ClosableLockService {
  const service = lockService(redisStore({ connection: url }), { lease: '30s', shutdownGrace: 0 });
  open.push(service);
  return service;
}

it('the few seconds that a lock has at first when it was waited for are no low margin of its lease', async () => {
  const [here, there] = [process(), process()];
  const registry = new Registry();
  new LockMeter(prometheusInstruments(registry), 200, new WeakSet()).measure(here);
  const events: LockEvent[] = [];
  here.events.subscribe((event) => events.push(event));
  const renewals = () => events.filter((event) => event.type === 'renewed');

  const before = await there.lock('job');
  const waiting = here.lock('job');
  await until(() => events.some(({ type }) => type === 'queued'));
  await before.unlock();
  const lock = await waiting;
  await until(() => renewals().length === 1);
  await lock.extend();

  expect(renewals().map(({ leaseMs }) => leaseMs)).toEqual([ALIVE_MS, 30_000]);
  expect(renewals()[0]!.marginMs).toBeLessThan(ALIVE_MS);
  const metric = 'nest_redis_lock_lease_margin_seconds';
  const { values } = (await registry.getMetricsAsJSON()).find(({ name }) => name === metric)!;
  const named = (ending: string) =>
    values.find((value) => 'metricName' in value && value.metricName === `${metric}_${ending}`)?.value;
  expect(named('count')).toBe(1);
  expect(named('sum')).toBeGreaterThan(15);
});
