import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockOptions } from 'nest-redis-lock';
import { until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ShortGrantStore } from '../support/stores/short-grant-store.js';

const KEY = 'a';
const SHORT_MS = 1500;
const LEASE_MS = 10_000;

describe('Short grants', () => {
  let store: ShortGrantStore;
  let here: ClosableLockService;
  let there: ClosableLockService;

  beforeEach(() => {
    store = new ShortGrantStore(SHORT_MS);
    here = lockService(store, { lease: LEASE_MS, shutdownGrace: 0 });
    there = lockService(store, { lease: LEASE_MS, shutdownGrace: 0 });
  });

  afterEach(async () => {
    await here.close();
    await there.close();
  });

  /** Resolves to the lock of a caller that has waited for it. */
  async function handedOver(options?: LockOptions) {
    const before = await there.lock(KEY);
    const next = here.lock(KEY, options);
    await until(() => store.waiters(KEY) === 1);
    await before.unlock();
    return next;
  }

  it('a lock with a short grant is not trusted for longer than that', async () => {
    const lock = await handedOver();
    expect(lock.remaining()).toBeLessThan(SHORT_MS);
    expect(lock.remaining()).toBeLessThan(await store.leaseLeft(KEY));
    await lock.unlock();
  });

  it('a lock with a short grant costs short work nothing, and gets its whole lease for other work', async () => {
    const short = await handedOver();
    await short.unlock();
    expect(store.renewals).toBe(0);
    const long = await handedOver();
    await until(() => long.remaining() > SHORT_MS);
    expect(store.renewals).toBe(1);
    expect(long.remaining()).toBeGreaterThan(LEASE_MS - SHORT_MS);
    expect(long.remaining()).toBeLessThan(await store.leaseLeft(KEY));
    await long.unlock();
  });

  it("a lock with a short grant ends in time when it can't be renewed", async () => {
    const lock = await handedOver();
    store.renew = () => new Promise(() => undefined);
    const endsAt = performance.now() + lock.remaining();
    await new Promise((aborted) => lock.signal.addEventListener('abort', aborted));
    // A timer may be a little late.
    expect(performance.now()).toBeLessThan(endsAt + 200);
    expect(() => lock.assertHeld()).toThrow(expect.objectContaining({ detail: expect.stringMatching(/lost/i) }));
  });

  it('a lock with a short grant is renewed though the first tries fail', async () => {
    const lock = await handedOver();
    const renew = store.renew.bind(store);
    let failures = 0;
    store.renew = async (renewals) => {
      if (++failures <= 3) throw new Error('away');
      return renew(renewals);
    };
    await until(() => lock.remaining() > SHORT_MS);
    await lock.unlock();
  });

  it.each<[string, LockOptions]>([
    ['whose lease is fixed', { watchdog: false }],
    ['which the watchdog renews for a shorter time than that', { maxHold: SHORT_MS / 2 }],
    ['whose key is to stay for some time', { atLeast: 1 }],
  ])('a short grant is asked for once more before the work begins by a lock %s', async (_why, options) => {
    const asked = store.acquires;
    const lock = await handedOver(options);
    // The one before, and twice this one: who has been handed it asks again.
    expect(store.acquires - asked).toBe(3);
    expect(lock.remaining()).toBeGreaterThan(LEASE_MS - SHORT_MS);
    await lock.unlock();
  });

  it('a lock with a short grant is renewed by extend(), and not once more by the watchdog', async () => {
    const lock = await handedOver();
    await lock.extend();
    expect(lock.remaining()).toBeGreaterThan(LEASE_MS - SHORT_MS);
    await until(() => performance.now() > Number(lock.acquiredAt) - performance.timeOrigin + 600);
    expect(store.renewals).toBe(1);
    await lock.unlock();
  });

  it('a lock with a short grant is handed off like any other, and renewed for the next caller', async () => {
    const before = await there.lock(KEY);
    const [first, second] = [here.lock(KEY), here.lock(KEY)];
    await until(() => store.waiters(KEY) === 1);
    await before.unlock();
    const { token } = (await first).leases[0]!;
    await (await first).unlock();
    const lock = await second;
    expect(lock.token).toBe(token);
    await until(() => lock.remaining() > SHORT_MS);
    await lock.unlock();
  });

  it('a lock with a short grant is not handed off to a caller for whom nobody would renew it', async () => {
    const before = await there.lock(KEY);
    const [first, second] = [here.lock(KEY), here.lock(KEY, { maxHold: SHORT_MS / 2 })];
    await until(() => store.waiters(KEY) === 1);
    await before.unlock();
    const { token } = (await first).leases[0]!;
    await (await first).unlock();
    expect((await second).token).not.toBe(token);
    expect((await second).remaining()).toBeGreaterThan(LEASE_MS - SHORT_MS);
    await (await second).unlock();
  });
});
