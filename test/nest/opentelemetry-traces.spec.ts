import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { context, propagation, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AlwaysOffSampler,
  TracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace';
import { getLockServiceToken, type LockEvent, LockOptionsError, LockService, WithLock } from 'nest-redis-lock';
import { LockOpenTelemetryModule, type LockOpenTelemetryOptions } from 'nest-redis-lock/opentelemetry';
import { LockTestingModule, TestLockService } from 'nest-redis-lock/testing';
import { from, lastValueFrom, mergeMap, Observable } from 'rxjs';
import { deferred, turn, until } from '../support/deferred.js';

Logger.overrideLogger(false);

let exporter: InMemorySpanExporter;
let provider: TracerProvider;
let tracer: Tracer;
const open: TestingModule[] = [];

beforeEach(() => {
  exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(
    (provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })),
  );
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  tracer = trace.getTracer('test');
});

afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
  await provider.shutdown();
  for (const api of [trace, context, propagation]) api.disable();
  jest.restoreAllMocks();
});

@Injectable()
class Accounts {
  @WithLock('account:<id>')
  async withdraw(id: string, work: (id: string) => unknown = () => undefined): Promise<unknown> {
    return work(id);
  }

  @WithLock('account:<id>')
  stream(id: string): Observable<string> {
    return from([id]).pipe(mergeMap(async (value) => inside('row', () => value)));
  }
}

async function start(options?: LockOpenTelemetryOptions, imports: ModuleMetadata['imports'] = []) {
  const module = options ? LockOpenTelemetryModule.forRoot(options) : LockOpenTelemetryModule;
  const app = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot({ shutdownGrace: 0 }), ...imports, module],
    providers: [Accounts],
  }).compile();
  open.push(app);
  await app.init();
  return { app, accounts: app.get(Accounts), locks: app.get(TestLockService) };
}

/** Runs work inside a span of the app. */
const inside = <T>(name: string, work: () => T | Promise<T>): Promise<T> =>
  tracer.startActiveSpan(name, async (span) => {
    try {
      return await work();
    } finally {
      span.end();
    }
  });

const spans = (name?: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => name === undefined || span.name === name);
const span = (name: string): ReadableSpan => {
  expect(spans(name).map(({ name }) => name)).toEqual([name]);
  return spans(name)[0]!;
};
const isChildOf = (child: ReadableSpan, parent: ReadableSpan): void =>
  expect([child.parentSpanContext?.spanId, child.spanContext().traceId]).toEqual([
    parent.spanContext().spanId,
    parent.spanContext().traceId,
  ]);
const millis = ([seconds, nanos]: readonly [number, number]): number => seconds * 1000 + nanos / 1e6;

describe('The spans of locks', () => {
  it('a lock that is free has one span, lock.hold: a child of the caller, and the parent of the work', async () => {
    const { accounts } = await start();
    await inside('request', () => accounts.withdraw('customer-1', () => inside('query', () => undefined)));
    expect(spans().map(({ name }) => name)).toEqual(['query', 'lock.hold', 'request']);
    isChildOf(span('lock.hold'), span('request'));
    isChildOf(span('query'), span('lock.hold'));
    expect(span('lock.hold').attributes).toEqual({
      'nest_redis_lock.label': 'Accounts.withdraw',
      'nest_redis_lock.template': 'account:<id>',
      'nest_redis_lock.mode': 'exclusive',
      'nest_redis_lock.fence': expect.any(Number),
    });
    expect(span('lock.hold').status.code).toBe(SpanStatusCode.UNSET);
    expect(span('lock.hold').instrumentationScope.name).toBe('nest-redis-lock');
  });

  it('a call that waits has a span lock.acquire, as long as the wait, linked to the span of the holder', async () => {
    const { accounts } = await start();
    const release = deferred();
    const first = inside('first', () => accounts.withdraw('1', () => release.promise));
    await turn();
    const before = Date.now();
    const second = inside('second', () => accounts.withdraw('1', () => inside('query', () => undefined)));
    await new Promise((resolve) => setTimeout(resolve, 20));
    release.resolve();
    await Promise.all([first, second]);
    await until(() => spans('lock.acquire').length === 1);
    const acquire = span('lock.acquire');
    const [held, heldNext] = spans('lock.hold') as [ReadableSpan, ReadableSpan];
    isChildOf(acquire, span('second'));
    isChildOf(held, span('first'));
    isChildOf(heldNext, span('second'));
    isChildOf(span('query'), heldNext);
    expect(acquire.links.map(({ context }) => [context.traceId, context.spanId])).toEqual([
      [held.spanContext().traceId, held.spanContext().spanId],
    ]);
    expect(acquire.attributes).toMatchObject({ 'nest_redis_lock.queued': true });
    expect(millis(acquire.duration)).toBeGreaterThanOrEqual(19);
    expect(millis(acquire.startTime)).toBeGreaterThanOrEqual(before - 2);
    expect(millis(acquire.endTime)).toBeLessThanOrEqual(Date.now() + 2);
    expect(millis(heldNext.startTime)).toBeGreaterThanOrEqual(millis(acquire.endTime) - 2);
  });

  it('siblings in a lock have no hold of their own, and a nested call has none', async () => {
    const { accounts } = await start();
    await accounts.withdraw('1', () => inside('work', () => accounts.withdraw('1', () => inside('inner', () => 1))));
    expect(spans('lock.hold')).toHaveLength(1);
    isChildOf(span('inner'), span('work'));
  });

  it('the rows of a stream are children of its lock', async () => {
    const { accounts } = await start();
    await inside('request', () => lastValueFrom(accounts.stream('1')));
    isChildOf(span('row'), span('lock.hold'));
    isChildOf(span('lock.hold'), span('request'));
  });

  it('lock() has a span until unlock(), though it can not be the active one', async () => {
    const { locks } = await start();
    await inside('request', async () => {
      const lock = await locks.lock('1');
      await inside('query', () => undefined);
      expect(spans('lock.hold')).toHaveLength(0);
      await lock.unlock();
    });
    isChildOf(span('lock.hold'), span('request'));
    isChildOf(span('query'), span('request'));
  });

  it('a renewal has no span', async () => {
    const { locks } = await start();
    await locks.withLock('1', (lock) => lock.extend());
    expect(spans().map(({ name }) => name)).toEqual(['lock.hold']);
  });
});

describe('The spans of calls that fail', () => {
  it('a call whose wait is over has the error type "busy", and no key anywhere', async () => {
    const { accounts, locks } = await start();
    const held = await locks.lock('account:customer-1');
    await expect(locks.lock('account:customer-1', { wait: 5, label: 'pay' })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
    });
    await until(() => spans('lock.acquire').length === 1);
    expect(span('lock.acquire').status.code).toBe(SpanStatusCode.ERROR);
    expect(span('lock.acquire').attributes).toMatchObject({
      'error.type': 'busy',
      'nest_redis_lock.label': 'pay',
      'nest_redis_lock.queued': true,
      'nest_redis_lock.holder': expect.stringMatching(/:\d+$/),
      'nest_redis_lock.timeout.reason': 'held',
    });
    await held.unlock();
    locks.simulate({ down: true });
    await expect(accounts.withdraw('customer-1')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    const [, down] = spans('lock.acquire');
    expect(down!.attributes).toMatchObject({ 'error.type': 'unavailable', 'nest_redis_lock.queued': false });
    expect(down!.events.map(({ name, attributes }) => [name, attributes?.['exception.type']])).toEqual([
      ['exception', 'LOCK_UNAVAILABLE'],
    ]);
    expect(down!.status.code).toBe(SpanStatusCode.ERROR);
    const text = JSON.stringify(
      spans().map(({ attributes, events, status, links }) => [attributes, events, status, links]),
    );
    expect(text).not.toContain('customer');
  });

  it('a call that is refused because the app shuts down has the error type "shutdown"', async () => {
    const { app, locks } = await start();
    await app.close();
    await expect(locks.lock('1')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(span('lock.acquire').attributes).toMatchObject({ 'error.type': 'shutdown' });
  });

  it('a call that only tried has no error status when the key is busy', async () => {
    const { locks } = await start();
    const lock = await locks.lock('1');
    expect(await locks.tryLock('1')).toBeNull();
    expect(span('lock.acquire').attributes).toMatchObject({ 'error.type': 'busy', 'nest_redis_lock.queued': false });
    expect(span('lock.acquire').status.code).toBe(SpanStatusCode.UNSET);
    await lock.unlock();
  });

  it('a call whose signal aborts has the error type "aborted", and nothing of the reason', async () => {
    const { locks } = await start();
    const lock = await locks.lock('1');
    const abort = new AbortController();
    const aborted = locks.lock('1', { signal: abort.signal });
    await turn();
    abort.abort(new Error('customer-1 has gone'));
    await expect(aborted).rejects.toThrow('customer-1');
    await until(() => spans('lock.acquire').length === 1);
    expect(span('lock.acquire').status).toEqual({ code: SpanStatusCode.ERROR, message: 'aborted' });
    expect(span('lock.acquire').events).toEqual([]);
    await lock.unlock();
  });

  it('a wrong call has the code of its error as the error type', async () => {
    const { locks } = await start();
    const nested = locks.withLock('1', () => locks.lock('1', { reentrant: false }));
    await expect(nested).rejects.toThrow(LockOptionsError);
    expect(span('lock.acquire').attributes).toMatchObject({ 'error.type': 'LOCK_OPTIONS_INVALID' });
    expect(span('lock.hold').status.code).toBe(SpanStatusCode.UNSET);
  });

  it('a lost lock records the loss, at once, and ends once', async () => {
    const { locks } = await start();
    const lock = await locks.lock('1');
    await locks.forceUnlock('1', { by: 'ops', reason: 'stuck' });
    await until(() => spans('lock.hold').length === 1);
    expect(span('lock.hold').attributes).toMatchObject({ 'error.type': 'taken' });
    expect(span('lock.hold').status.code).toBe(SpanStatusCode.ERROR);
    expect(span('lock.hold').events).toHaveLength(1);
    const warn = jest.spyOn(console, 'warn');
    await lock.unlock();
    expect(spans('lock.hold')).toHaveLength(1);
    expect(warn).not.toHaveBeenCalled();
  });
});

describe('The options of traces', () => {
  it('acquireSpans: "all" shows also calls that got their lock at once; keys: true shows the keys; named modules tell their name', async () => {
    const { app } = await start({ acquireSpans: 'all', keys: true }, [LockTestingModule.forRoot({ name: 'billing' })]);
    await inside('request', () =>
      app.get<LockService>(getLockServiceToken('billing')).withLock(['b', 'a'], () => undefined),
    );
    isChildOf(span('lock.acquire'), span('request'));
    for (const name of ['lock.acquire', 'lock.hold'])
      expect(span(name).attributes).toMatchObject({
        'nest_redis_lock.keys': ['a', 'b'],
        'nest_redis_lock.module': 'billing',
      });
    expect(span('lock.acquire').attributes).toMatchObject({ 'nest_redis_lock.queued': false });
  });

  it('traces: false makes no spans; metrics: false and a provider of its own do', async () => {
    const silent = await start({ traces: false });
    await silent.locks.withLock('1', () => undefined);
    expect(spans()).toEqual([]);
    const own = new InMemorySpanExporter();
    const tracerProvider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: own })] });
    const traced = await start({ metrics: false, tracerProvider });
    await traced.locks.withLock('1', () => undefined);
    expect(own.getFinishedSpans().map(({ name }) => name)).toEqual(['lock.hold']);
    expect(spans()).toEqual([]);
  });

  it.each([
    ['acquireSpans', { acquireSpans: 'some' }],
    ['traces', { traces: 'yes' }],
    ['keys', { keys: 1 }],
    ['tracerProvider', { tracerProvider: {} }],
  ])('the app does not boot with a wrong %s', async (name, options) => {
    await expect(start(options as LockOpenTelemetryOptions)).rejects.toThrow(`"${name}"`);
  });

  it('without an SDK, and without a context manager, locks work as ever', async () => {
    trace.disable();
    context.disable();
    const { accounts } = await start();
    await expect(accounts.withdraw('1', () => accounts.withdraw('1', () => 'done'))).resolves.toBe('done');
  });

  it('what a sampler or a span processor throws stays away from the calls', async () => {
    const error = jest.spyOn(Logger.prototype, 'error').mockReturnValue();
    const broken = (): never => {
      throw new Error('no traces today');
    };
    const processor = { onStart: broken, onEnd: broken, forceFlush: async () => {}, shutdown: async () => {} };
    const tracerProvider = new TracerProvider({ spanProcessors: [processor satisfies SpanProcessor] });
    const { locks } = await start({ tracerProvider });
    await expect(locks.withLock('1', () => 'done')).resolves.toBe('done');
    const lock = await locks.lock('1');
    expect(await locks.tryLock('1')).toBeNull();
    await expect(lock.unlock()).resolves.toBe(true);
    expect(error.mock.calls.filter(([line]) => String(line).includes('can not be traced'))).toHaveLength(1);
  });

  it('an unsampled call asks nobody for a link, and names no trace to others', async () => {
    const sampler = new ParentBasedSampler({ root: new AlwaysOffSampler() });
    const { locks } = await start({ tracerProvider: new TracerProvider({ sampler }) });
    const asked = jest.spyOn(locks.processes, 'ask');
    const lock = await locks.lock('1');
    const waiter = locks.lock('1');
    await turn();
    expect((await locks.inspect('1'))!.holder.traceparent).toBeUndefined();
    await lock.unlock();
    await (await waiter).unlock();
    expect(asked).not.toHaveBeenCalled();
  });

  it('the event of an acquired lock names the span of the lock', async () => {
    const { accounts, locks } = await start();
    const told: LockEvent[] = [];
    locks.events.subscribe((event) => told.push(event));
    await accounts.withdraw('42');
    const { traceId, spanId } = exporter
      .getFinishedSpans()
      .find(({ name }) => name === 'lock.hold')!
      .spanContext();
    expect(told.find(({ type }) => type === 'acquired')).toMatchObject({ traceparent: `00-${traceId}-${spanId}-01` });
  });

  it('inspect() tells the trace of the holder', async () => {
    const { locks } = await start();
    const lock = await locks.lock('1');
    const traceparent = (await locks.inspect('1'))!.holder.traceparent;
    await lock.unlock();
    const { traceId, spanId } = span('lock.hold').spanContext();
    expect(traceparent).toBe(`00-${traceId}-${spanId}-01`);
  });
});
