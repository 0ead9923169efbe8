import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger, StreamableFile } from '@nestjs/common';
import { Readable } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  CurrentLock,
  InjectLocks,
  type Lock,
  LockOptionsError,
  LockService,
  LockTimeoutError,
  type LockTimeoutContext,
  LockUnavailableError,
  WithLock,
} from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';

type Body = (lock: Lock) => unknown;
const instead = jest.fn<(context: LockTimeoutContext) => unknown>();
const stop = new AbortController();

/** Each method holds the lock on `job` while it runs the body it is given. */
@Injectable()
class Jobs {
  constructor(@InjectLocks('billing') readonly billing: LockService) {}

  @WithLock('job', { wait: 0 })
  async throwing(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { wait: 0, onTimeout: 'skip' })
  async skipping(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { wait: 0, onTimeout: (context) => instead(context) })
  async replacing(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { wait: 0 })
  async observed(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { wait: '40ms' })
  async waitingShortly(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { wait: '1m', maxWaiters: 1 })
  async waitingAlone(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { wait: '1m', signal: stop.signal })
  async untilStopped(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { reentrant: false })
  async onceOnly(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { module: 'billing', wait: 0 })
  async inBilling(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }
}

let module: TestingModule;
let jobs: Jobs;
let locks: LockService;
const store = new MemoryLockStore();
const body = jest.fn<Body>();

beforeAll(async () => {
  const imports = [LockTestingModule.forRoot({ store }), LockTestingModule.forRoot({ name: 'billing' })];
  module = await Test.createTestingModule({ imports, providers: [Jobs] }).compile();
  [jobs, locks] = [module.get(Jobs), module.get(LockService)];
});

beforeEach(() => {
  body.mockReset().mockReturnValue('done');
  instead.mockReset().mockReturnValue('instead');
});

afterEach(async () => {
  jest.restoreAllMocks();
  expect(await store.isLocked('job')).toBe(false);
});

afterAll(() => module.close());

describe('what the body returns', () => {
  it('a body may return an object with a subscribe() of its own, as a client of a message broker has', async () => {
    const consumer = { subscribe: () => undefined };
    expect(await jobs.throwing(() => consumer)).toBe(consumer);
  });

  it.each([
    ['a Node stream', () => Readable.from([1])],
    ['a web stream', () => new ReadableStream()],
    ['a web response', () => new Response(new ReadableStream())],
    ['a file', () => new StreamableFile(Buffer.from('a'))],
    ['a stream of an API client', () => ({ async *[Symbol.asyncIterator]() {} })],
  ])('a body that returns %s, which is read without the lock, causes one warning', async (what, result) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    class Streams {
      @WithLock('stream')
      async [what](body: Body) {
        return body(undefined!);
      }
    }
    const streams = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      providers: [Streams],
    }).compile();
    const made = result();
    for (let call = 0; call < 2; call++)
      expect(await streams.get<Record<string, (body: Body) => unknown>>(Streams)[what]!(() => made)).toBe(made);
    expect(warn.mock.calls).toEqual([[expect.stringContaining(`Streams.${what}() returned a stream`)]]);
    warn.mockRestore();
    await streams.close();
  });

  it.each([
    ['no body', () => new Response(null, { status: 204 })],
    ['a text', () => new Response('text')],
    ['JSON', () => Response.json({})],
  ])('a body that returns a web response with %s causes no warning', async (_what, result) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    const response = result();
    expect(await jobs.throwing(() => response)).toBe(response);
    expect([warn.mock.calls, response.bodyUsed, response.body?.locked ?? false]).toEqual([[], false, false]);
    warn.mockRestore();
  });

  it('a body that returns an Observable of another library, or a store, causes one warning', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    const store = { subscribe: () => undefined, getState: () => 1, ['@@observable']: () => store };
    for (let call = 0; call < 2; call++) expect(await jobs.observed(() => store)).toBe(store);
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining('Jobs.observed() returned a store, or an Observable of')],
    ]);
  });
});

describe('when the key stays held', () => {
  let held: Lock;
  beforeEach(async () => (held = await locks.lock('job')));
  afterEach(async () => expect(await held.unlock()).toBe(true));

  it('a call for a key that stays held rejects with LockTimeoutError and never runs the body, by default', async () => {
    await expect(jobs.throwing(body)).rejects.toBeInstanceOf(LockTimeoutError);
    expect(body).not.toHaveBeenCalled();
  });

  it('a call for a key that stays held returns undefined and never runs the body with onTimeout: "skip"', async () => {
    expect(await jobs.skipping(body)).toBeUndefined();
    expect(body).not.toHaveBeenCalled();
  });

  it('a call for a key that stays held returns what onTimeout makes of the error and the arguments', async () => {
    expect(await jobs.replacing(body)).toBe('instead');
    expect(instead).toHaveBeenCalledWith({ error: expect.any(LockTimeoutError), args: [body] });
    expect(body).not.toHaveBeenCalled();
  });

  it('a call for a key that stays held waits for what onTimeout promises, and throws its own error', async () => {
    instead
      .mockReturnValueOnce(Promise.resolve('later'))
      .mockImplementationOnce(() => Promise.reject(new RangeError('mine')));
    expect(await jobs.replacing(body)).toBe('later');
    await expect(jobs.replacing(body)).rejects.toThrow(new RangeError('mine'));
  });

  it('a call for a key that stays held waits as long as "wait" says, and no longer', async () => {
    const error = await jobs.waitingShortly(body).catch((error: LockTimeoutError) => error);
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', reason: 'held', waitMs: 40, keys: ['job'] });
    expect((error as LockTimeoutError).waitedMs).toBeGreaterThanOrEqual(39);
    expect(body).not.toHaveBeenCalled();
  });

  it('a call waits for the key to become free, then runs the body once', async () => {
    const waiting = jobs.waitingAlone(body);
    await held.unlock();
    expect(await waiting).toBe('done');
    expect(body).toHaveBeenCalledTimes(1);
    held = await locks.lock('job');
  });

  it('a call that would be one waiter more than maxWaiters is refused at once', async () => {
    const waiting = jobs.waitingAlone(body);
    await expect(jobs.waitingAlone(body)).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', reason: 'too-many-waiters' });
    await held.unlock();
    expect(await waiting).toBe('done');
    expect(body).toHaveBeenCalledTimes(1);
    held = await locks.lock('job');
  });

  it('a call takes its locks from the module that it names', async () => {
    const there = await jobs.billing.lock('job');
    await expect(jobs.inBilling(body)).rejects.toBeInstanceOf(LockTimeoutError);
    await there.unlock();
    expect(await jobs.inBilling(body)).toBe('done');
  });

  it('a call rejects with the reason of the signal that ends its wait', async () => {
    const waiting = jobs.untilStopped(body);
    stop.abort(new RangeError('no longer needed'));
    await expect(waiting).rejects.toBe(stop.signal.reason);
    expect(body).not.toHaveBeenCalled();
  });
});

describe.each(['skipping', 'replacing'] as const)('an onTimeout that is %s covers only the own time-out:', (method) => {
  it('an onTimeout does not cover a time-out of another lock, taken inside the body', async () => {
    await using other = await locks.lock('other');
    const call = jobs[method](() => locks.withLock('other', () => 'nested', { wait: 0 }));
    await expect(call).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', keys: ['other'] });
    expect(instead).not.toHaveBeenCalled();
    other.assertHeld();
  });

  it('an onTimeout does not cover an outage, and the body does not run', async () => {
    const outage = new LockUnavailableError('Redis is down.');
    jest.spyOn(store, 'acquire').mockRejectedValue(outage);
    await expect(jobs[method](body)).rejects.toBe(outage);
    expect(body).not.toHaveBeenCalled();
    expect(instead).not.toHaveBeenCalled();
  });

  it("an onTimeout does not cover the body's own error", async () => {
    const error = new RangeError('mine');
    body.mockImplementation(() => Promise.reject(error));
    await expect(jobs[method](body)).rejects.toBe(error);
  });
});

describe('a call nested in a call that holds the key', () => {
  it('a nested call enters at once, with the same fence', async () => {
    const fences = await jobs.throwing(({ fence }) => jobs.throwing((inner) => [fence, inner.fence]));
    expect(fences).toEqual([expect.any(Number), (fences as number[])[0]]);
  });

  it('a nested call is refused instead of waiting for itself with reentrant: false', async () => {
    await expect(jobs.onceOnly(() => jobs.onceOnly(body))).rejects.toBeInstanceOf(LockOptionsError);
    expect(body).not.toHaveBeenCalled();
  });
});
