import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockUnavailableError, type StoreListener } from 'nest-redis-lock';
import { deferred, turn, until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

const OPTIONS = { lease: '10s', wait: '5s', shutdownGrace: 0 } as const;

describe('Races', () => {
  let store: ScriptedStore;
  let locks: ClosableLockService;

  beforeEach(() => {
    store = new ScriptedStore();
    locks = lockService(store, OPTIONS);
  });

  afterEach(() => locks.close());

  it('no caller enters on a grant that had ended when its reply came', async () => {
    const news: (() => void)[] = [];
    const askAgain: (() => void)[] = [];
    const listen = store.listen.bind(store);
    store.listen = (listener: StoreListener) => {
      askAgain.push(() => listener.resync());
      listen({ ...listener, granted: (token, grant) => news.push(() => listener.granted(token, grant)) > 0 });
    };
    const late = lockService(store, OPTIONS);
    const first = await locks.lock('a');
    let entered = false;
    const call = late.lock('a').then(() => (entered = true));
    await until(() => store.memory.waiters('a') === 1);
    await first.unlock();
    expect(news).toHaveLength(1);
    await store.forceRelease('a');
    const second = await locks.lock('a', { wait: 0 });
    askAgain[0]!();
    await until(() => store.memory.waiters('a') === 1); // it was just told that the key is held
    news[0]!();
    await turn();
    expect(entered).toBe(false);
    expect(second.isHeld).toBe(true);
    await Promise.all([
      late.close(),
      expect(call).rejects.toHaveProperty('detail', expect.stringMatching(/shutting down/)),
    ]);
  });

  it('a lock is handed off to one caller only when a nested loss makes somebody unlock it again', async () => {
    let inside = 0;
    const work = async () => {
      expect(++inside).toBe(1);
      await turn();
      inside--;
    };
    const first = await locks.lock('a');
    const second = locks.withLock('a', async (lock) => {
      const nested = await locks.lock('a');
      nested.signal.addEventListener('abort', () => void lock.unlock());
    });
    const rest = [1, 2, 3].map(() => locks.withLock('a', work));
    await first.unlock();
    await Promise.all([second, ...rest]);
  });

  it('a lock has the lease that its own caller asked for, though the caller before was just extending it', async () => {
    const [first, second, third] = [locks.lock('a'), locks.lock('a'), locks.lock('a')];
    await (await first).unlock();
    const earlier = await second;
    const answer = deferred();
    store.afterRenew = () => answer.promise;
    const extended = expect(earlier.extend('5s')).rejects.toMatchObject({ reason: 'unlocked' });
    await earlier.unlock();
    const later = await third;
    expect(later.leases[0]).toBe(earlier.leases[0]);
    answer.resolve();
    await extended;
    expect(later.leases[0]!.leaseMs).toBe(10_000);
    expect(later.isHeld).toBe(true);
  });

  it('a lease has an end that every store can count to', async () => {
    await expect(locks.lock('a', { lease: 1e19 })).rejects.toMatchObject({ code: 'LOCK_OPTIONS_INVALID' });
    expect(store.asked).toEqual([]);
  });

  it('a call with a lease too short for the store fails alone: the caller behind it gets its turn', async () => {
    // The reply comes when the lease is over.
    store.afterAcquire = () => sleep(140);
    const hasty = expect(locks.lock('a', { lease: 100, wait: 120 })).rejects.toBeInstanceOf(LockUnavailableError);
    const patient = locks.lock('a');
    await hasty;
    expect((await patient).isHeld).toBe(true);
  });

  it('a caller that gives up leaves its place in the store to the next caller of its process', async () => {
    const elsewhere = lockService(store, OPTIONS);
    const first = await elsewhere.lock('a');
    const givesUp = expect(locks.lock('a', { wait: 30 })).rejects.toMatchObject({ reason: 'held' });
    const order: string[] = [];
    const heir = locks.withLock('a', () => void order.push('heir'));
    await until(() => store.memory.waiters('a') === 1);
    const third = lockService(store, OPTIONS);
    const latecomer = third.withLock('a', () => void order.push('latecomer'));
    await until(() => store.memory.waiters('a') === 2);
    await givesUp;
    await turn();
    await first.unlock();
    await Promise.all([heir, latecomer]);
    expect(order).toEqual(['heir', 'latecomer']);
    await Promise.all([elsewhere.close(), third.close()]);
  });

  it('a lock that is kept by `atLeast` is not freed by a shutdown when the store does not reply', async () => {
    const answer = deferred();
    store.afterRelease = () => {
      store.afterRelease = async () => undefined;
      return answer.promise;
    };
    const lock = await locks.lock('a', { atLeast: '5s' });
    const unlocked = lock.unlock();
    const closed = locks.close();
    // More than a shutdown takes that waits for nothing.
    for (let turns = 0; turns < 10; turns++) await turn();
    expect(await store.isLocked('a')).toBe(true);
    answer.resolve();
    await closed;
    expect(await unlocked).toBe(true);
    expect(await store.isLocked('a')).toBe(true);
  });

  it('a call that is aborted when it has its lock, before its work, keeps the key for no `atLeast`', async () => {
    const controller = new AbortController();
    const subscription = locks.events.subscribe(({ type }) => type === 'acquired' && controller.abort('too late'));
    const call = locks.withLock('a', () => 'ran', { atLeast: '5s', signal: controller.signal });
    await expect(call).rejects.toBe('too late');
    subscription.unsubscribe();
    expect(await store.isLocked('a')).toBe(false);
  });

  it('a pending call holds up two shutdowns at once, and both of them end', async () => {
    const answer = deferred();
    store.afterAcquire = () => answer.promise;
    const call = expect(locks.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching(/shutting down/));
    await turn();
    const shutdowns = Promise.all([locks.close(), locks.close()]);
    answer.resolve();
    await call;
    await shutdowns;
    expect(await store.isLocked('a')).toBe(false);
  });
});
