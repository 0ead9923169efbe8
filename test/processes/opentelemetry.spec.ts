import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { until } from '../support/deferred.js';
import { TestChild } from '../support/processes/child-process.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';

/** A span as OTLP writes it in JSON. */
interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
}

/** A metric as OTLP writes it in JSON. */
interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly histogram?: { readonly dataPoints: readonly { readonly explicitBounds: readonly number[] }[] };
}

interface Scope {
  readonly scope: { readonly name: string };
  readonly spans?: readonly Span[];
  readonly metrics?: readonly Metric[];
}

interface Export {
  readonly resourceSpans?: readonly { readonly scopeSpans: readonly Scope[] }[];
  readonly resourceMetrics?: readonly { readonly scopeMetrics: readonly Scope[] }[];
}

/** The app; a copy elsewhere runs on the packages that are installed there: test/consumers/run.mjs. */
const APP = process.env['TRACED_APP'] ?? 'traced-app.mjs';

let redis: RedisServer;
/** Hears what the processes ask each other. */
let ears: Redis;
let heard: string[];
let receiver: Server;
let received: Export[];
const children: TestChild[] = [];

beforeEach(async () => {
  redis = await startRedis();
  ears = new Redis(redis.url);
  heard = [];
  ears.on('pmessage', (_pattern, _channel, message: string) => heard.push(message));
  received = [];
  receiver = createServer((request, response) => {
    void json(request).then((body) => {
      received.push(body as Export);
      response.setHeader('Content-Type', 'application/json').end('{}');
    });
  });
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
});

afterEach(async () => {
  for (const child of children.splice(0)) await child.kill();
  receiver.close();
  ears.disconnect();
  await redis.stop();
});

async function start(name: string) {
  const { port } = receiver.address() as AddressInfo;
  const child = new TestChild(APP, redis.url, `http://127.0.0.1:${port}`, name);
  children.push(child);
  return { child, url: await child.message<string>() };
}

it('two instrumented apps export their locks by OTLP: the wait of one request is linked to the lock of the other', async () => {
  const [first, second] = [await start('first'), await start('second')];
  const inside = first.child.message();
  const holding = fetch(`${first.url}/hold`);
  expect(await inside).toBe('inside');
  await ears.psubscribe('*');
  const waiting = fetch(`${second.url}/hold`);
  const secondInside = second.child.message();
  await until(() => heard.some((message) => message.startsWith('answer ')));
  first.child.send('release');
  expect(await (await holding).text()).toBe('done');
  await secondInside;
  second.child.send('release');
  expect(await (await waiting).text()).toBe('done');
  for (const { child } of [first, second]) {
    child.send('close');
    expect(await child.exit()).toBe(0);
  }

  const scopes = received.flatMap(({ resourceSpans = [] }) => resourceSpans.flatMap(({ scopeSpans }) => scopeSpans));
  const spans = scopes.flatMap(({ spans = [] }) => spans);
  const named = (name: string) => spans.filter((span) => span.name === name);
  const byId = (id?: string) => spans.find(({ spanId }) => spanId === id);
  const ours = scopes.filter(({ scope }) => scope.name === 'nest-redis-lock').flatMap(({ spans = [] }) => spans);
  expect(ours.map(({ name }) => name).sort()).toEqual(['lock.acquire', 'lock.hold', 'lock.hold']);
  for (const span of ours) expect(byId(span.parentSpanId)?.name).toMatch(/^GET/);

  const [acquire] = named('lock.acquire') as [Span];
  const holder = byId(acquire.links?.[0]?.spanId);
  expect(holder?.name).toBe('lock.hold');
  expect(holder?.traceId).toBe(acquire.links?.[0]?.traceId);
  expect(holder?.traceId).not.toBe(acquire.traceId);
  // What the work asks Redis for is a part of its lock. Of this library, only scripts are in traces.
  const commands = scopes
    .filter(({ scope }) => scope.name.includes('ioredis'))
    .flatMap(({ spans = [] }) => spans)
    .filter(({ parentSpanId }) => parentSpanId);
  expect(new Set(commands.map(({ name, parentSpanId }) => `${name} in ${byId(parentSpanId)?.name}`))).toEqual(
    new Set(['evalsha in GET', 'get in lock.hold']),
  );

  const metrics = received
    .flatMap(({ resourceMetrics = [] }) => resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics))
    .filter(({ scope }) => scope.name === 'nest-redis-lock')
    .flatMap(({ metrics = [] }) => metrics);
  const acquired = metrics.find(({ name }) => name === 'nest_redis_lock.acquire.duration');
  expect(acquired?.unit).toBe('s');
  expect(acquired?.histogram?.dataPoints[0]?.explicitBounds.slice(0, 2)).toEqual([0.0005, 0.001]);
  expect(JSON.stringify([ours, metrics])).not.toContain('customer');
}, 60_000);
