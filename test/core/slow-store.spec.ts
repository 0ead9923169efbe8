import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type Lock, LockUnavailableError } from 'nest-redis-lock';
import { type Deferred, deferred, standStill, turn, until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { NO_REQUESTS } from '../../lib/service/request-port.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

describe('Slow stores', () => {
  let store: ScriptedStore;
  let locks: ClosableLockService;

  beforeEach(() => {
    store = new ScriptedStore();
    locks = lockService(store, { lease: 400, wait: 2000, shutdownGrace: 0 });
  });

  afterEach(() => locks.close());

  /** How much sooner its lease ends here than in the store, in ms. A process that stands still finds it longer. */
  async function marginOf(lock: Lock): Promise<number> {
    const leftInStore = await store.leaseLeft('a');
    return leftInStore - lock.remaining();
  }

  it('a lease is measured from before the store was asked: a lock ends here before it ends there', async () => {
    // The store takes this long to reply.
    store.afterAcquire = () => sleep(60);
    const lock = await locks.lock('a', { lease: 2000, watchdog: false });
    expect(await marginOf(lock)).toBeGreaterThan(2);

    store.afterRenew = () => sleep(60);
    await lock.extend(3000);
    expect(await marginOf(lock)).toBeGreaterThan(2);
  });

  it.each<[string, () => unknown, string]>([
    [
      'throws instead of rejecting',
      () => {
        throw new Error('out of order');
      },
      'out of order',
    ],
    ['returns nothing, as a mock', () => undefined, 'returned undefined instead of a grant'],
    ['resolves with null', async () => null, 'returned null instead of a grant'],
  ])('a store that %s leaves the key free, and the app free to shut down', async (_how, answer, message) => {
    const acquire = store.acquire.bind(store);
    store.acquire = answer as typeof acquire;
    await expect(locks.lock('a')).rejects.toThrow(message);
    store.acquire = acquire;
    await locks.withLock('a', () => undefined, { wait: 0 });
    await locks.close();
  });

  it('a renewed lease is measured from before the store was asked', async () => {
    const lock = await locks.lock('a');
    const renewed = deferred();
    store.afterRenew = () => sleep(60).then(() => renewed.resolve());
    await renewed.promise;
    await turn();
    expect(await marginOf(lock)).toBeGreaterThan(2);
  });

  it('the work never starts when the process stands still for too long just after the grant', async () => {
    const acquire = store.acquire.bind(store);
    store.acquire = (command) => {
      const granted = acquire(command);
      queueMicrotask(() => void granted.then(() => standStill(120)));
      return granted;
    };
    const work = jest.fn();
    await expect(locks.withLock('a', work, { lease: 100 })).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'expired',
    });
    expect(work).not.toHaveBeenCalled();
  });

  it('the work never starts when the grant comes after the lease', async () => {
    // The reply comes when the lease is over.
    store.afterAcquire = () => sleep(140);
    let ran = false;
    const call = locks.withLock('a', () => (ran = true), { lease: 100, wait: 0 });
    await expect(call).rejects.toBeInstanceOf(LockUnavailableError);
    expect(ran).toBe(false);
    expect(await store.isLocked('a')).toBe(false);
  });

  it('a waiter asks with a fresh token once the store has said that its token is spent', async () => {
    const tokens: string[] = [];
    const acquire = store.acquire.bind(store);
    store.acquire = async (command) => {
      tokens.push(command.token);
      const answer = await acquire(command);
      if (answer.granted || !command.isQueued || tokens.length > 3) return answer;
      await store.cancel(command);
      return { ...answer, spent: true };
    };
    const inTheWay = await locks.lock('a');
    const other = lockService(store, { wait: 5000, shutdownGrace: 0 });
    const waiting = other.lock('a');
    await until(() => tokens.length === 4);
    await inTheWay.unlock();
    const lock = await waiting;
    expect(tokens[2]).toBe(tokens[1]);
    expect(tokens[3]).not.toBe(tokens[1]);
    expect(lock.token).toBe(tokens[3]);
    expect(await lock.unlock()).toBe(true);
    expect(await store.isLocked('a')).toBe(false);
    await other.close();
  });

  describe('while the store has not answered the caller in front', () => {
    let answer: Deferred;
    let others: Promise<unknown>[];

    beforeEach(async () => {
      answer = deferred();
      const acquire = store.acquire.bind(store);
      store.acquire = async (command) => {
        await answer.promise;
        return acquire(command);
      };
      const first = locks.lock('a');
      others = [locks.lock('a', { wait: 20 }), locks.lock('a', { wait: 40, signal: new AbortController().signal })];
      // Their waits are over in the meantime.
      await sleep(60);
      others.push(first);
    });

    it('a caller whose wait is over is told of an outage, not of a busy key, if the store is down', async () => {
      const outage = new LockUnavailableError('It is down.');
      answer.reject(outage);
      for (const result of await Promise.allSettled(others)) expect(result).toMatchObject({ reason: outage });
    });

    it('a caller whose wait is over is told that the key is busy, if the one in front gets the lock', async () => {
      answer.resolve();
      const [one, other, lock] = await Promise.allSettled(others);
      for (const late of [one, other]) expect(late).toMatchObject({ reason: { code: 'LOCK_TIMEOUT' } });
      expect(lock).toMatchObject({ value: { isHeld: true } });
    });
  });

  it('a call that tries once does not wait for another one whose grants all come too late', async () => {
    const acquire = store.acquire.bind(store);
    store.acquire = async (command) => {
      const reply = await acquire(command);
      if (command.leaseMs === 100) await sleep(110);
      return reply;
    };
    const front = locks.lock('a', { lease: 100, wait: 500 }).catch((error: unknown) => error);
    expect(await Promise.race([locks.tryLock('a'), front])).toBeNull();
    expect(await front).toBeInstanceOf(LockUnavailableError);
  });

  it.each<[string, (locks: ClosableLockService) => Promise<unknown>]>([
    ['only tries', (locks) => locks.tryLock('a')],
    ['waits for a short time', (locks) => locks.lock('a', { wait: 30 })],
  ])('an outage is no busy key for who %s behind a caller of several keys, and another one', async (_what, ask) => {
    const fail = [deferred(), deferred()];
    let asked = 0;
    store.acquire = async () => {
      await fail[asked++]?.promise;
      throw new LockUnavailableError('no');
    };
    const failed = (call: Promise<unknown>) => expect(call).rejects.toBeInstanceOf(LockUnavailableError);
    const front = failed(locks.lock(['a', 'b']));
    const behind = failed(locks.lock('a'));
    const call = failed(ask(locks));
    await sleep(40);
    fail[0]!.resolve();
    await front;
    await turn();
    fail[1]!.resolve();
    await Promise.all([behind, call]);
  });

  it.each<[string, (locks: ClosableLockService) => Promise<unknown>]>([
    ['only try', (locks) => locks.tryLock('a')],
    ['wait for a short time', (locks) => locks.lock('a', { wait: 30 })],
  ])('an outage is no busy key for several who %s behind a caller of several keys', async (_what, ask) => {
    const asks: Deferred[] = [];
    store.acquire = async () => {
      const answer = deferred();
      asks.push(answer);
      await answer.promise;
      throw new LockUnavailableError('no');
    };
    const calls = [locks.lock(['a', 'b']), ...Array.from({ length: 3 }, () => ask(locks))];
    const failures = Promise.all(calls.map((call) => call.then(String, (error: Error) => error.constructor)));
    await sleep(40);
    asks[0]!.resolve();
    await until(() => asks.length === 2);
    asks[1]!.resolve();
    expect(await failures).toEqual(calls.map(() => LockUnavailableError));
  });

  it('callers that only try a busy key get one answer for all of them', async () => {
    const { memory } = store;
    const stranger = {
      keys: ['a'],
      token: 'a stranger',
      leaseMs: 5000,
      sharing: 'exclusive',
      label: undefined,
    } as const;
    await memory.acquire({ ...stranger, queue: false });
    const answers = [deferred(), deferred()];
    let asked = 0;
    store.afterAcquire = () => answers[asked++]!.promise;
    const [first, second, ...others] = Array.from({ length: 20 }, () => locks.tryLock('a'));
    answers[0]!.resolve();
    expect(await Promise.all([first, ...others])).toEqual([first, ...others].map(() => null));
    answers[1]!.resolve();
    expect(await second).toBeNull();
    expect(asked).toBe(2);
  });

  it('the key is given back when the caller aborts while the store is being asked', async () => {
    const answer = deferred();
    store.afterAcquire = () => answer.promise;
    const controller = new AbortController();
    const call = expect(locks.lock('a', { signal: controller.signal })).rejects.toBe('changed my mind');
    await turn();
    controller.abort('changed my mind');
    answer.resolve();
    await call;
    expect(await store.isLocked('a')).toBe(false);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  it('the key is given back when the client goes while the store is being asked, after the call has waited', async () => {
    const client = new AbortController();
    const requests = { ...NO_REQUESTS, waitSignal: () => client.signal };
    const serving = lockService(store, { watchdog: false, shutdownGrace: 0 }, requests);
    const first = await serving.lock('a');
    const call = expect(serving.lock('a')).rejects.toBe('client gone');
    const [asked, answer] = [deferred(), deferred()];
    store.afterAcquire = () => (asked.resolve(), answer.promise);
    void first.unlock();
    await asked.promise;
    client.abort('client gone');
    answer.resolve();
    await call;
    expect(await store.isLocked('a')).toBe(false);
    await serving.close();
  });

  it('a lock that is extended while its renewal is under way is trusted for the right time', async () => {
    const lock = await locks.lock('a', { lease: 300 });
    const answers = [deferred(), deferred()];
    let asked = 0;
    store.afterRenew = () => answers[asked++]?.promise ?? Promise.resolve();
    const extended = lock.extend('2s');
    await until(() => asked === 2); // the watchdog's own renewal, for 300 ms
    answers[0]!.resolve();
    await extended;
    answers[1]!.resolve();
    await turn();
    expect(lock.remaining()).toBeLessThan(await store.leaseLeft('a'));
    expect(lock.remaining()).toBeGreaterThan(1000);
  });

  it('a lock survives one renewal that fails, or is never answered', async () => {
    for (const spoiled of [() => Promise.reject(new LockUnavailableError('no')), () => new Promise(() => undefined)]) {
      const lock = await locks.lock('a', { lease: 900 });
      let renewals = 0;
      store.afterRenew = () => (++renewals === 1 ? spoiled() : Promise.resolve());
      await until(() => renewals === 4);
      expect(lock.isHeld).toBe(true);
      await lock.unlock();
    }
  });

  it('a wait leaves no listener on its signal', async () => {
    const { signal } = new AbortController();
    const lock = await locks.lock('a');
    const waiting = Array.from({ length: 20 }, () => locks.withLock('a', () => undefined, { signal }));
    await turn();
    expect(getEventListeners(signal, 'abort').length).toBeGreaterThan(0);
    await lock.unlock();
    await Promise.all(waiting);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});
