import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { TracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace';
import { holderTrace } from '../../lib/core/holder-traces.js';
import type { Processes } from '../../lib/core/processes.js';
import { ServiceTracer } from '../../lib/opentelemetry/service-tracer.js';
import { HolderQueries } from '../../lib/redis/wake/holder-queries.js';
import type { Questions } from '../../lib/redis/wake/questions.js';
import { until } from '../support/deferred.js';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

let url: string;
withRedis(({ server }) => (url = server.url));
const open: ClosableLockService[] = [];
let exporter: InMemorySpanExporter;

beforeEach(() => {
  exporter = new InMemorySpanExporter();
});

afterEach(async () => {
  for (const service of open.splice(0)) await service.close();
});

/** A service with a connection and a wake channel of its own, as in another process. */
function process(isTraced = true): ClosableLockService {
  const service = lockService(redisStore({ connection: url }), { shutdownGrace: 0 });
  open.push(service);
  const tracerProvider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  if (isTraced)
    service.watchers.traceWith(new ServiceTracer(service, { tracerProvider, acquireSpans: 'queued', keys: false }));
  return service;
}

const spans = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
const acquired = () => until(() => spans('lock.acquire').length === 1);

it('the span of a waiter is linked to that of the holder in another process', async () => {
  const [here, there] = [process(), process()];
  const held = await there.lock('job');
  const asked = jest.spyOn(here.processes, 'ask');
  const waiter = here.lock('job');
  await until(() => asked.mock.results.length === 1);
  const reply = await asked.mock.results[0]!.value;
  await held.unlock();
  await (await waiter).unlock();
  await acquired();
  const [hold] = spans('lock.hold');
  const { traceId, spanId } = hold!.spanContext();
  expect(reply).toEqual({ answer: `00-${traceId}-${spanId}-01` });
  expect(spans('lock.acquire')[0]!.links.map(({ context }) => context)).toEqual([
    { traceId, spanId, traceFlags: 1, isRemote: true },
  ]);
});

it('to ask for the trace of a lock does not keep its process from handing it off', async () => {
  const [here, there] = [process(), process()];
  const held = await there.lock('job');
  const [lease] = held.leases;
  expect(await holderTrace(here.processes, lease!.token)).toBeDefined();
  expect(lease!.isTokenExposed).toBe(false);
  const info = await here.inspect('job');
  expect(info!.holder.traceparent).toBe(await holderTrace(here.processes, lease!.token));
  expect(lease!.isTokenExposed).toBe(true);
});

it('list() names the trace in which each caller waits, in whatever process, and none without a span', async () => {
  const [here, there, untraced] = [process(), process(), process(false)];
  const held = await there.lock('job');
  const waiters = [here, untraced].map((service) => service.lock('job'));
  const waiting = async () => (await there.list()).locks[0]!.waiters;
  await until(async () => (await waiting()).length === 2);
  const named = (await waiting()).map(({ traceparent }) => traceparent).filter((one) => one !== undefined);
  await held.unlock();
  for (const waiter of waiters) void waiter.then((lock) => lock.unlock());
  await Promise.all(waiters);
  await acquired();
  const { traceId, spanId } = spans('lock.acquire')[0]!.spanContext();
  expect(named).toEqual([`00-${traceId}-${spanId}-01`]);
});

it('the span of a waiter has no link when the holder is not traced, or is another tool', async () => {
  const [here, untraced] = [process(), process(false)];
  const held = await untraced.lock('job');
  const asked = jest.spyOn(here.processes, 'ask');
  const waiter = here.lock('job');
  await until(() => asked.mock.results.length === 1);
  expect(await asked.mock.results[0]!.value).toEqual({ answer: null });
  await held.unlock();
  await (await waiter).unlock();
  await acquired();
  expect(spans('lock.acquire')[0]!.links).toEqual([]);
  expect(await holderTrace(here.processes, 'some other tool')).toBeUndefined();
});

const BAD = [
  '',
  'customer-1',
  42,
  null,
  { traceparent: 'x' },
  '01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  '00-00000000000000000000000000000000-b7ad6b7169203331-01',
  '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
  '00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01',
  '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n',
  '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more',
];

it.each(BAD)('what a process says of its trace is checked: %j', async (answer) => {
  const ask = async () => ({ answer });
  expect(await holderTrace({ ask } as unknown as Processes, 'host:1:abc.1')).toBeUndefined();
  const reply = { text: JSON.stringify({ fence: 1, acquiredAt: 2, label: 'x', traceparent: answer }) };
  const queries = new HolderQueries({ ask: async () => reply } as unknown as Questions);
  expect(await queries.ask('token', 'channel', 'reply')).toEqual({ fence: 1, acquiredAt: 2, label: 'x' });
});
