import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError, LockService, LockTimeoutError, LockUnavailableError } from 'nest-redis-lock';
import { MemoryLockStore, TestLockService } from 'nest-redis-lock/testing';
import { aborted, turn } from '../support/deferred.js';

let locks: TestLockService;

beforeEach(() => {
  locks = new TestLockService();
});

afterEach(() => locks.onApplicationShutdown());

const run = (key: string | string[] = 'a') => locks.withLock(key, () => 'ran');

describe('TestLockService', () => {
  it('a TestLockService is a LockService whose locks really exclude, without Nest and without Redis', async () => {
    expect(locks).toBeInstanceOf(LockService);
    await using held = await locks.lock('a');
    expect(await locks.tryLock('a')).toBeNull();
    expect(await run('b')).toBe('ran');
    held.assertHeld();
  });

  it('a TestLockService takes the options of a module, and refuses bad ones', async () => {
    const hurried = new TestLockService({ wait: 0 });
    await using held = await hurried.lock('a');
    await expect(hurried.lock('a')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', waitMs: 0 });
    expect(() => new TestLockService({ lease: '1ms' })).toThrow('"lease"');
    held.assertHeld();
  });

  it('a TestLockService shares a store with others', async () => {
    const store = new MemoryLockStore();
    const [one, two] = [new TestLockService({ store }), new TestLockService({ store })];
    await using held = await one.lock('a');
    expect(await two.tryLock('a')).toBeNull();
    held.assertHeld();
  });
});

describe('simulate({ busy })', () => {
  it.each<[string, string | string[] | true]>([
    ['a key', 'a'],
    ['keys', ['z', 'a']],
    ['all keys', true],
  ])('simulate({ busy }) of %s refuses callers at once, whatever their wait is', async (_what, busy) => {
    locks.simulate({ busy });
    await expect(run('a')).rejects.toBeInstanceOf(LockTimeoutError);
    await expect(run(['a', 'b'])).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', holder: 'another-node:1' });
    await expect(locks.lock('a', { wait: Infinity })).rejects.toBeInstanceOf(LockTimeoutError);
    expect(await locks.tryLock('a', { wait: '1m' })).toBeNull();
    expect(await locks.isLocked('a')).toBe(true);
    expect(await locks.inspect('a')).toMatchObject({ holder: { host: 'another-node', pid: 1 } });
  });

  it('simulate({ busy }) keeps the options of a class, except its wait', async () => {
    class Options {
      get wait() {
        return '1m' as const;
      }
      get label() {
        return 'import';
      }
    }
    locks.simulate({ busy: 'a' });
    await expect(locks.lock('a', new Options())).rejects.toMatchObject({ label: 'import', waitMs: 0 });
  });

  it('simulate({ busy }) leaves other keys alone', async () => {
    locks.simulate({ busy: 'a' });
    expect(await run('b')).toBe('ran');
    expect(await locks.inspect('b')).toBeNull();
  });

  it('simulate({ busy }) lets in a call that is nested in a holder, as it would be without it', async () => {
    const value = await locks.withLock('a', () => {
      locks.simulate({ busy: 'a' });
      return run('a');
    });
    expect(value).toBe('ran');
  });

  it('simulate({ busy }) is over after reset() and after another simulate()', async () => {
    locks.simulate({ busy: true });
    locks.reset();
    expect(await run('a')).toBe('ran');

    locks.simulate({ busy: 'a' });
    locks.simulate({ busy: 'b' });
    expect(await run('a')).toBe('ran');
  });
});

describe('simulate({ down })', () => {
  beforeEach(() => locks.simulate({ down: true }));

  it('simulate({ down }) makes each call fail with LockUnavailableError, not with a time-out', async () => {
    const calls = [
      run(),
      locks.lock('a'),
      locks.tryLock('a'),
      locks.isLocked('a'),
      locks.inspect('a'),
      locks.forceUnlock('a'),
    ];
    for (const outcome of await Promise.allSettled(calls))
      expect(outcome).toMatchObject({ reason: expect.any(LockUnavailableError) });
  });

  it('simulate({ down }) is over after reset()', async () => {
    await expect(run()).rejects.toBeInstanceOf(LockUnavailableError);
    locks.reset();
    expect(await run()).toBe('ran');
  });

  it('simulate({ down }) ends held locks with their lease, as nobody can renew them', async () => {
    locks.reset();
    const lock = await locks.lock('a', { lease: 100 });
    locks.simulate({ down: true });
    expect(await aborted(lock.signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  });

  it('simulate({ down }) keeps no key of a caller that unlocked meanwhile', async () => {
    locks.reset();
    const lock = await locks.lock('a');
    locks.simulate({ down: true });
    await lock.unlock();
    locks.reset();
    expect(await locks.isLocked('a')).toBe(false);
  });

  it('simulate({ down }) reaches those who wait already, at once', async () => {
    locks.reset();
    await using held = await locks.lock('a');
    const outcome = locks.lock('a', { wait: Infinity, fair: true }).catch((error: unknown) => error);
    await turn();
    locks.simulate({ down: true });
    // A refused call leaves one turn to timers and sockets.
    expect(await Promise.race([outcome, turn().then(turn).then(turn)])).toBeInstanceOf(LockUnavailableError);
    held.assertHeld();
  });
});

describe('simulate({ lost })', () => {
  it.each<[string, string | string[] | true]>([
    ['a key', 'a'],
    ['keys', ['z', 'a']],
    ['all keys', true],
  ])('simulate({ lost }) of %s aborts the signal of the lock that is held, before it returns', async (_what, lost) => {
    const lock = await locks.lock(['a', 'b']);
    locks.simulate({ lost });
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
    expect(() => lock.assertHeld()).toThrow(LockLostError);
  });

  it('simulate({ lost }) leaves the locks on other keys alone', async () => {
    await using lock = await locks.lock('b');
    locks.simulate({ lost: 'a' });
    await turn();
    lock.assertHeld();
  });

  it('simulate({ lost }) aborts a lock that is taken later, when its work has begun and waits', async () => {
    locks.simulate({ lost: 'a' });
    const states: boolean[] = [];
    const work = locks.withLock('a', async ({ signal }) => {
      states.push(signal.aborted);
      await turn();
      states.push(signal.aborted);
    });
    await expect(work).rejects.toBeInstanceOf(LockLostError);
    expect(states).toEqual([false, true]);
  });

  it('simulate({ lost }) makes withLock fail also when the work never waits, or fails itself', async () => {
    locks.simulate({ lost: 'a' });
    await expect(run()).rejects.toBeInstanceOf(LockLostError);
    const broken = new Error('broken');
    await expect(locks.withLock('a', () => Promise.reject(broken))).rejects.toMatchObject({
      code: 'LOCK_LOST',
      cause: broken,
    });
    expect(await locks.withLock('a', () => 'ran', { onLost: 'ignore' })).toBe('ran');
  });

  it('simulate({ lost }) makes each of several calls fail, though their work never waits', async () => {
    locks.simulate({ lost: 'a' });
    const results = await Promise.allSettled(Array.from({ length: 4 }, () => locks.withLock('a', () => 'ran')));
    expect(results.map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
  });

  it('simulate({ lost }) loses a lock that was handed to a waiter, at the latest when it is released', async () => {
    const first = await locks.lock('a');
    const second = locks.withLock('a', () => 'ran', { fair: true });
    await turn();
    locks.simulate({ lost: 'a' });
    expect(first.isHeld).toBe(false);
    await expect(second).rejects.toBeInstanceOf(LockLostError);
  });

  it('simulate({ lost }) takes nothing from a waiter who gets the lock by that', async () => {
    await locks.lock('a');
    const waiting = locks.lock('a', { fair: true });
    await turn();
    locks.simulate({ lost: 'a' });
    locks.reset();
    const lock = await waiting;
    expect(await locks.tryLock('a')).toBeNull();
    lock.assertHeld();

    locks.simulate({ lost: 'a' });
    expect(lock.signal.aborted).toBe(true);
  });

  it('simulate({ lost }) gives the key to others, as it belongs to somebody else now', async () => {
    await locks.lock('a');
    locks.simulate({ lost: 'a' });
    locks.reset();
    expect(await run()).toBe('ran');
  });
});

it('simulate() refuses an unknown situation', () => {
  expect(() => locks.simulate({ bussy: 'a' } as never)).toThrow(
    'There is no situation "bussy" to simulate. Did you mean "busy"? Known ones: busy, lost, down.',
  );
});
