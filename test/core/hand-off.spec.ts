import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  LockUnavailableError,
  type AcquireCommand,
  type Granted,
  type Busy,
  type Lock,
  type LockOptions,
  type OwnedLock,
} from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { aborted, deferred, turn, until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

/** As anybody may write one: a grant, and its fence. */
class OneFenceStore extends MemoryLockStore {
  override async acquire(command: AcquireCommand): Promise<Granted | Busy> {
    const answer = await super.acquire(command);
    return answer.granted ? { granted: true, fence: answer.fence, contended: answer.contended } : answer;
  }
}

describe('Hand-offs', () => {
  let store: ScriptedStore;
  let here: ClosableLockService;
  let there: ClosableLockService;

  beforeEach(() => {
    store = new ScriptedStore();
    here = lockService(store, { lease: '10s', wait: '5s', shutdownGrace: 0 });
    there = lockService(store, { lease: '10s', wait: '5s', shutdownGrace: 0 });
  });

  afterEach(async () => {
    await here.close();
    await there.close();
  });

  const askedFor = (what: ScriptedStore['asked'][number]) => store.asked.filter((one) => one === what).length;
  /** A test that fails leaves some of them behind: they must not end the whole run. */
  const many = <T>(count: number, one: (number: number) => T) =>
    Array.from({ length: count }, (_, number) => {
      const made = one(number);
      if (made instanceof Promise) made.catch(() => undefined);
      return made;
    });

  it('a lock is handed off inside a process in the order of arrival, and the store is not asked', async () => {
    const served: number[] = [];
    await Promise.all(many(30, (number) => here.withLock('a', () => void served.push(number))));
    expect(served).toEqual(many(30, (number) => number));
    // The first came alone, so the store would not say who else waits: after 16, the next took it for all that stood
    // behind.
    expect(store.asked).toEqual(['acquire', 'reserve', 'release', 'acquire', 'release']);
  });

  it('a lock is handed off to a caller that came after the grant, at no cost', async () => {
    const first = await here.lock('a');
    const second = here.lock('a');
    await first.unlock();
    await (await second).unlock();
    expect(store.asked).toEqual(['acquire', 'release']);
    expect((await second).fence).toBe(first.fence + 1);
  });

  it.each<[boolean, LockOptions]>([
    [true, {}],
    [false, { lease: '9s' }],
    [false, { watchdog: false }],
    [false, { atLeast: 1 }],
  ])('a lock comes with many fences: %s, if the next caller of the process has the options %j', async (many, next) => {
    const first = await here.lock('a', { watchdog: false });
    const second = here.lock('a');
    const third = here.lock('a', next);
    await first.unlock();
    expect((await second).token.endsWith('+')).toBe(many);
    await (await second).unlock();
    await (await third).unlock();
  });

  it('a lock goes to another process that waits, however often callers of the first one come back', async () => {
    const order: string[] = [];
    const loop = async () => {
      while (!order.includes('there')) await here.withLock('a', () => turn().then(() => void order.push('here')));
    };
    const ours = many(2, loop);
    await turn();
    await there.withLock('a', () => void order.push('there'));
    await Promise.all(ours);
    expect(order.length).toBeLessThanOrEqual(20);
  });

  it('a lock is not handed off when the store has not replied for a while: it may be lost', async () => {
    const first = await here.lock('a');
    const second = here.lock('a');
    await store.memory.release({ keys: ['a'], token: first.leases[0]!.token, leaseMs: 1000 });
    const theirs = await there.lock('a');
    await until(() => Date.now() > Number(first.acquiredAt) + 260);
    expect(await first.unlock()).toBe(false);
    await theirs.unlock();
    expect((await second).leases[0]).not.toBe(first.leases[0]);
  });

  it('a lock goes to another process after 20 ms in all, if that process queued before the grant', async () => {
    const last = await there.lock('a');
    const first = here.lock('a');
    await until(() => store.memory.waiters('a') === 1);
    const theirs = there.lock('a', { fair: true });
    await until(() => store.memory.waiters('a') === 2);
    await last.unlock();
    const lock = await first;
    const second = here.lock('a');
    await until(() => Date.now() > Number(lock.acquiredAt) + 25);
    await lock.unlock();
    await (await theirs).unlock();
    expect((await second).isHeld).toBe(true);
  });

  it('a lock is never handed off when the store does not say how many fences came with it', async () => {
    const simple = lockService(new OneFenceStore(), { lease: '10s', wait: '5s', shutdownGrace: 0 });
    const locks = many(5, () => simple.lock('a'));
    const tokens: string[] = [];
    for (const lock of locks) {
      tokens.push((await lock).leases[0]!.token);
      await (await lock).unlock();
    }
    expect(new Set(tokens).size).toBe(5);
    await simple.close();
  });

  it('each caller gets a larger fence at a hand-off, also when new fences were reserved on the way', async () => {
    const fences: number[] = [];
    await Promise.all(many(400, () => here.withLock('a', ({ fence }) => void fences.push(fence))));
    fences.push(await there.withLock('a', ({ fence }) => fence));
    expect(new Set(fences).size).toBe(401);
    expect(fences).toEqual([...fences].sort((a, b) => a - b));
    expect(askedFor('acquire')).toBeLessThan(30);
  });

  it('new fences are reserved before none is left for a hand-off', async () => {
    await Promise.all(many(120, () => here.withLock('a', turn)));
    expect(askedFor('reserve')).toBeGreaterThan(0);
    expect(askedFor('acquire')).toBe(2);
  });

  it('a lock goes to another process after at most 16 hand-offs', async () => {
    const first = await here.lock('a');
    const order: string[] = [];
    const ours = many(60, () => here.withLock('a', () => void order.push('here')));
    const theirs = there.withLock('a', () => void order.push('there'));
    await turn();
    await first.unlock();
    await Promise.all([...ours, theirs]);
    expect(order.indexOf('there')).toBeLessThanOrEqual(17);
    expect(order).toHaveLength(61);
  });

  it('a lock goes to another process that comes in the middle of a run of hand-offs', async () => {
    const order: string[] = [];
    let theirs: Promise<void> | undefined;
    const ours = many(100, (number) =>
      here.withLock('a', async () => {
        order.push('here');
        if (number === 30) theirs = there.withLock('a', () => void order.push('there'));
        await turn();
      }),
    );
    await Promise.all(ours);
    await theirs;
    expect(order.indexOf('there')).toBeGreaterThan(30);
    expect(order.indexOf('there')).toBeLessThanOrEqual(30 + 17);
  });

  it('a lock goes to another process after 20 ms of hand-offs', async () => {
    const order: string[] = [];
    const first = await here.lock('a');
    // Work of 12 ms: two hand-offs take longer than 20 ms.
    const ours = many(8, () => here.withLock('a', () => sleep(12).then(() => void order.push('here'))));
    const theirs = there.withLock('a', () => void order.push('there'));
    await turn();
    await first.unlock();
    await Promise.all([...ours, theirs]);
    expect(order.indexOf('there')).toBeLessThanOrEqual(4);
  });

  it.each<[string, LockOptions]>([
    ['asks for another lease', { lease: '20s' }],
    ['has a fixed lease', { watchdog: false }],
  ])('a lock is released to the store instead of handed off when the next caller %s', async (_why, options) => {
    const first = here.lock('a');
    const second = here.lock('a');
    const third = here.lock('a', options);
    await (await first).unlock();
    const { token } = (await second).leases[0]!;
    await (await second).unlock();
    const lock = await third;
    expect(lock.token).not.toBe(token);
    expect(lock.remaining()).toBeGreaterThan(9_000);
    await lock.unlock();
  });

  it('a lock is released to the store instead of handed off when too little of its lease is left', async () => {
    const first = here.lock('a', { lease: 300, maxHold: 10 });
    const rest = many(2, () => here.lock('a', { lease: 300 }));
    await (await first).unlock();
    const second = await rest[0]!;
    const { token } = second.leases[0]!;
    store.afterRenew = () => new Promise(() => undefined);
    await until(() => second.remaining() < 140);
    await second.unlock();
    const third = await rest[1]!;
    expect(third.token).not.toBe(token);
    expect(third.remaining()).toBeGreaterThan(200);
  });

  it.each<[string, (lock: Lock) => Promise<unknown>]>([
    ['and set back since', (lock) => lock.extend('1h').then(() => lock.extend('10s'))],
    [
      'without a reply',
      async (lock) => {
        store.afterRenew = () => Promise.reject(new LockUnavailableError('No reply.'));
        await lock.extend('1h').catch(() => undefined);
      },
    ],
    ['by a call that nobody waits for', async (lock) => void lock.extend('1h').catch(() => undefined)],
  ])(
    'a lock is not handed off when its lease was extended %s: the store may keep it that long',
    async (_how, change) => {
      const first = here.lock('a');
      const second = here.lock('a');
      await change(await first);
      await (await first).unlock();
      const lock = await second;
      expect(lock.remaining()).toBeLessThan(10_000);
      expect(await store.leaseLeft('a')).toBeLessThanOrEqual(10_000);
      await lock.unlock();
    },
  );

  it('a lock is given back with the longest lease that it may have: a store has to try for that long', async () => {
    const lock = await here.lock('a');
    store.afterRenew = () => Promise.reject(new LockUnavailableError('No reply.'));
    await expect(lock.extend('1h')).rejects.toThrow(LockUnavailableError);
    const release = jest.spyOn(store, 'release');
    await lock.unlock();
    expect(release.mock.calls[0]![0]).toMatchObject({ leaseMs: 3_600_000 });
  });

  it('each caller has a `maxHold` of its own after a hand-off', async () => {
    const lease = 1500;
    const first = here.lock('a', { lease });
    const short = here.lock('a', { lease, maxHold: 1 });
    const long = here.lock('a', { lease });
    await (await first).unlock();
    await (await short).unlock();
    const lock = await long;
    await until(() => performance.now() > Number(lock.acquiredAt) - performance.timeOrigin + 2 * lease);
    expect(lock.isHeld).toBe(true);
  });

  describe('after the hand-off', () => {
    let earlier: Lock;
    let later: Lock;

    beforeEach(async () => {
      const locks = many(3, () => here.lock('a'));
      await (await locks[0]!).unlock();
      earlier = await locks[1]!;
      await earlier.unlock();
      later = await locks[2]!;
      expect(later.leases[0]).toBe(earlier.leases[0]);
    });

    it('a caller that handed its lock off does not hold it any more', () => {
      expect(earlier.isHeld).toBe(false);
      expect(earlier.remaining()).toBe(0);
      expect(() => earlier.assertHeld()).toThrow(
        expect.objectContaining({ detail: expect.stringMatching(/it had been unlocked/) }),
      );
      expect(later.isHeld).toBe(true);
    });

    it('a caller that handed its lock off can neither unlock nor extend it', async () => {
      expect(await earlier.unlock()).toBe(true);
      await expect(earlier.extend()).rejects.toMatchObject({ reason: 'unlocked' });
      expect(later.isHeld).toBe(true);
      expect(await there.tryLock('a')).toBeNull();
    });

    it('a caller that handed its lock off does not hear of a later loss', async () => {
      const signals = [earlier.signal, later.signal];
      await store.forceRelease('a');
      await later.extend().catch(() => undefined);
      expect(await aborted(signals[1]!)).toMatchObject({ reason: 'taken' });
      expect(signals[0]!.aborted).toBe(false);
      expect(await later.unlock()).toBe(false);
    });
  });

  it('new fences are asked for with the lease of that moment, though its holder changes it meanwhile', async () => {
    const asked: OwnedLock[] = [];
    const reserve = store.reserve.bind(store);
    store.reserve = (lock) => {
      asked.push(lock);
      return reserve(lock);
    };
    const change = async (lock: Lock) => {
      if (asked.length > 0 && lock.leases[0]!.leaseMs === 10_000) await lock.extend('5s');
    };
    await Promise.all(many(60, () => here.withLock('a', change)));
    expect(asked[0]!.leaseMs).toBe(10_000);
  });

  it('a lock that turns out to be lost while new fences are reserved is lost for its present holder', async () => {
    let lost: Promise<unknown> | undefined;
    const calls = many(60, (number) =>
      here.withLock('a', async ({ signal, keys, leases }) => {
        if (number < 46) return;
        if (number === 46) await store.memory.release({ keys, token: leases[0]!.token, leaseMs: 1000 });
        lost ??= number > 46 ? aborted(signal) : undefined;
        await lost;
      }),
    );
    const results = await Promise.allSettled(calls);
    expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    expect(await lost).toMatchObject({ reason: 'taken' });
  });

  it('a lock is not handed off to a caller that gave up', async () => {
    const first = await here.lock('a');
    const controller = new AbortController();
    const second = here.lock('a');
    const gone = expect(here.lock('a', { signal: controller.signal })).rejects.toBe('gone');
    const third = here.lock('a');
    await first.unlock();
    controller.abort('gone');
    await gone;
    await (await second).unlock();
    expect((await third).isHeld).toBe(true);
  });

  describe('to a caller whose signal aborts', () => {
    const microtasks = async (count: number) => {
      for (let left = count; left > 0; left--) await Promise.resolve();
    };

    it('a listener of the signal that unlocks the lock in front does not let the body run', async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const events: string[] = [];
      const first = await here.lock('a');
      here.events.subscribe(({ type }) => void events.push(type));
      signal.addEventListener('abort', () => void first.unlock());
      let ran = false;
      const second = here.withLock('a', () => (ran = true), { signal });
      await turn();
      controller.abort('gone');
      await expect(second).rejects.toBe('gone');
      expect(ran).toBe(false);
      expect(events).toEqual(['queued', 'waited', 'aborted']);
      expect(await store.inspect('a')).toBeUndefined();
    });

    it('the next caller gets the lock that was handed off to it', async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const first = await here.lock('a');
      signal.addEventListener('abort', () => void first.unlock());
      const second = expect(here.lock('a', { signal })).rejects.toBe('gone');
      const third = here.lock('a');
      await turn();
      controller.abort('gone');
      await second;
      expect((await third).isHeld).toBe(true);
    });

    it('the store is not asked when a listener of the signal gives the turn to the caller', async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const first = await here.lock('a', { watchdog: false });
      signal.addEventListener('abort', () => void first.unlock());
      const second = expect(here.lock('a', { signal })).rejects.toBe('gone');
      await turn();
      controller.abort('gone');
      await second;
      expect(store.asked).toEqual(['acquire', 'release']);
      await here.withLock('a', turn, { wait: 0 });
    });

    it.each(['free', 'handed off'])('no body runs with an aborted signal, whenever it aborts (%s)', async (how) => {
      const outcomes = new Set<unknown>();
      for (let moment = 0; moment < 40; moment++) {
        const controller = new AbortController();
        const { signal } = controller;
        const first = how === 'free' ? undefined : await here.lock('a');
        const call = here.withLock('a', () => signal.aborted, { signal }).catch((error: unknown) => error);
        void first?.unlock();
        if (moment > 0) await microtasks(moment);
        controller.abort('gone');
        outcomes.add(await call);
        expect(await store.inspect('a')).toBeUndefined();
      }
      expect([...outcomes].sort()).toEqual([false, 'gone']);
    });

    it('a try of the same work does not begin when a listener of its signal ends the turn in front', async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const lock = await here.lock('a');
      const endTurn = await here.takeTurn(lock, {});
      signal.addEventListener('abort', endTurn);
      const second = expect(here.takeTurn(lock, { signal })).rejects.toBe('gone');
      const third = here.takeTurn(lock, {});
      await turn();
      controller.abort('gone');
      await second;
      (await third)();
    });
  });

  it('a crowd of 20,000 waiters is served in no more time for each of them than a small one', async () => {
    const finish = deferred();
    const first = here.withLock('a', () => finish.promise);
    let served = 0;
    const { signal } = new AbortController();
    const rest = many(20_000, () => here.withLock('a', () => void served++, { wait: '1m', signal }));
    finish.resolve();
    await first;
    await Promise.all(rest);
    expect(served).toBe(20_000);
  });
});
