import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import {
  LockKeyError,
  LockLostError,
  LockOptionsError,
  LockTimeoutError,
  LockUnavailableError,
  type ForceUnlockOptions,
  type Lock,
  type LockEvent,
} from 'nest-redis-lock';
import { aborted, deferred, standStill, turn, until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { withTwoServices } from '../support/stores/two-services.js';
import type { Backing } from './backing.js';

/** What not every store can do. */
interface Abilities {
  /**
   * Whether callers queue in the store, in their order. A quorum has no common queue: whoever waits asks again and
   * again.
   */
  readonly queues: boolean;
}

/** What a `LockService` promises on every store. */
export function promisesOfLocks(
  name: string,
  start: () => Promise<Backing>,
  { queues }: Abilities = { queues: true },
): void {
  const inQueue = (promise: string, test: () => Promise<void>) => {
    if (queues) it(promise, test);
  };

  describe(`Locks in ${name}`, () => {
    let backing: Backing;
    let here: ClosableLockService;
    let there: ClosableLockService;

    withTwoServices(start, (services) => ({ backing, here, there } = services));

    /** The token of the holder, as soon as its process can hear who asks. */
    const holderOf = async (key: string) => {
      let info = await there.inspect(key);
      await until(async () => (info = await there.inspect(key))!.holder.fence !== undefined);
      return info!.holder.token;
    };

    describe('exclusion', () => {
      it('two callers, of one process or of two, are never inside at once', async () => {
        let balance = 0;
        let inside = 0;
        const deposit = async () => {
          expect(++inside).toBe(1);
          const read = balance;
          await turn();
          balance = read + 1;
          inside--;
        };
        await Promise.all(
          Array.from({ length: 20 }, (_, index) => (index % 2 ? here : there).withLock('account:1', deposit)),
        );
        expect(balance).toBe(20);
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('calls for different keys run side by side', async () => {
        const [a, b] = await Promise.all([here.lock('a'), there.lock('b')]);
        expect(a.isHeld && b.isHeld).toBe(true);
      });

      it('callers of one process are served in the order in which they came', async () => {
        const first = await here.lock('account:1');
        const served: number[] = [];
        const rest = [1, 2, 3, 4].map((number) => here.withLock('account:1', () => void served.push(number)));
        await first.unlock();
        await Promise.all(rest);
        expect(served).toEqual([1, 2, 3, 4]);
      });
    });

    describe('withLock', () => {
      it("withLock returns the work's own value and frees the key", async () => {
        const value = { own: true };
        expect(await here.withLock('account:1', () => value)).toBe(value);
        expect(await backing.lockKeys()).toEqual([]);
      });

      it("withLock throws the work's own error, untouched, and frees the key", async () => {
        const error = new Error('mine');
        await expect(here.withLock('account:1', () => Promise.reject(error))).rejects.toBe(error);
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('withLock passes its lock to the work', async () => {
        const lock = await here.withLock('account:1', (lock) => {
          expect(lock).toMatchObject({ key: 'account:1', keys: ['account:1'], mode: 'exclusive', isHeld: true });
          expect(lock.remaining()).toBeGreaterThan(0);
          expect(lock.remaining()).toBeLessThanOrEqual(1000);
          expect(lock.acquiredAt.getTime()).toBeLessThanOrEqual(Date.now());
          return lock;
        });
        expect(lock.isHeld).toBe(false);
        expect(lock.remaining()).toBe(0);
      });
    });

    describe('waiting', () => {
      it('a waiter gives up after `wait`, and the error says what happened to which key', async () => {
        await here.lock('account:1');
        const error: unknown = await there.lock('account:1', { wait: 60 }).catch((error: unknown) => error);
        expect(error).toBeInstanceOf(LockTimeoutError);
        expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', keys: ['account:1'], waitMs: 60, reason: 'held' });
        expect((error as LockTimeoutError).waitedMs).toBeGreaterThanOrEqual(59);
        expect((error as LockTimeoutError).detail).toMatch(
          /Gave up waiting for lock "account:1" after \d+ ms \(holder .+:\d+\)/,
        );
      });

      it('a waiter gets the key when the holder unlocks', async () => {
        const first = await here.lock('account:1');
        const second = there.lock('account:1');
        await first.unlock();
        expect((await second).isHeld).toBe(true);
      });

      inQueue('callers of several processes are served in the order of arrival, when they want it fair', async () => {
        const first = await here.lock('account:1');
        const served: number[] = [];
        const waiting: Promise<void>[] = [];
        for (let number = 0; number < 12; number++) {
          const who = number % 3 === 0 ? there : here;
          waiting.push(who.withLock('account:1', () => void served.push(number), { fair: true }));
          await backing.waiters('account:1', number + 1);
        }
        await first.unlock();
        await Promise.all(waiting);
        expect(served).toEqual([...served].sort((a, b) => a - b));
        expect(served).toHaveLength(12);
        expect(await backing.lockKeys()).toEqual([]);
      });

      inQueue('each process keeps its place in the queue, whoever comes later', async () => {
        const first = await here.lock('account:1', { watchdog: false });
        const served: string[] = [];
        const theirs = there.withLock('account:1', () => void served.push('there'));
        await backing.waiters('account:1', 1);
        const ours = here.withLock('account:1', () => void served.push('here'));
        await first.unlock();
        await Promise.all([theirs, ours]);
        expect(served).toEqual(['there', 'here']);
      });

      inQueue('a waiter that gave up is passed over, and leaves nothing behind', async () => {
        const first = await here.lock('account:1');
        const controller = new AbortController();
        const gone = expect(there.lock('account:1', { signal: controller.signal, fair: true })).rejects.toBe('gone');
        await backing.waiters('account:1', 1);
        const late = expect(there.lock('account:1', { wait: 400, fair: true })).rejects.toBeInstanceOf(
          LockTimeoutError,
        );
        const second = there.lock('account:1', { fair: true });
        await backing.waiters('account:1', 3);
        controller.abort('gone');
        await gone;
        await late;
        await backing.waiters('account:1', 1);
        await first.unlock();
        await (await second).unlock();
        expect(await backing.lockKeys()).toEqual([]);
      });

      inQueue(
        'the key of a holder that stopped renewing goes to the first in the queue, not to a caller that asks earlier',
        async () => {
          const first = await here.lock('account:1', { lease: 300, watchdog: false });
          const second = there.lock('account:1');
          await backing.waiters('account:1', 1);
          await until(() => !first.isHeld);
          for (let tries = 0; tries < 50; tries++) expect(await here.tryLock('account:1')).toBeNull();
          expect((await second).isHeld).toBe(true);
        },
      );

      inQueue('a waiter gets a lease of its own that counts from when it was last known to wait', async () => {
        const first = await here.lock('account:1');
        const askedAt = performance.now();
        const second = there.lock('account:1', { lease: 5000, watchdog: false });
        await backing.waiters('account:1', 1);
        // A lease that counted from the hand-off would end this much later.
        await sleep(60);
        const unlockedAt = performance.now();
        await first.unlock();
        const lock = await second;
        const knownAt = backing.handOffsAreConfirmed ? unlockedAt : askedAt;
        expect(lock.remaining()).toBeLessThan(5000 - (performance.now() - knownAt));
      });

      inQueue('a time-out says who has the key and how many waiters were ahead', async () => {
        await here.lock('account:1');
        const first = here.lock('account:1', { fair: true });
        await backing.waiters('account:1', 1);
        const second = there.lock('account:1', { fair: true });
        await backing.waiters('account:1', 2);
        const error: unknown = await there.lock('account:1', { wait: 60, fair: true }).catch((error: unknown) => error);
        expect(error).toMatchObject({ reason: 'held', ahead: 2 });
        expect((error as LockTimeoutError).detail).toMatch(/\(holder .+:\d+, 2 waiters ahead\)\. Raise "wait"/);
        await here.forceUnlock('account:1');
        await (await first).unlock();
        await (await second).unlock();
      });

      it('a call with wait: 0 tries once', async () => {
        await here.lock('account:1');
        await expect(there.lock('account:1', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', waitMs: 0 });
        await expect(here.lock('account:1', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', waitMs: 0 });
      });

      it("an aborted wait rejects with the signal's own reason and leaves nothing behind", async () => {
        const first = await here.lock('account:1');
        for (const waiter of [here, there]) {
          const controller = new AbortController();
          const waiting = waiter.lock('account:1', { signal: controller.signal });
          await turn();
          controller.abort('changed my mind');
          await expect(waiting).rejects.toBe('changed my mind');
        }
        await first.unlock();
        expect(await backing.lockKeys()).toEqual([]);
        expect((await there.lock('account:1', { wait: 0 })).isHeld).toBe(true);
      });

      it('a call whose signal has aborted before does not ask the store', async () => {
        await expect(here.lock('account:1', { signal: AbortSignal.abort('too late') })).rejects.toBe('too late');
        expect(await backing.lockKeys()).toEqual([]);
      });

      inQueue('one waiter more than `maxWaiters` is refused at once, also one that wants it fair', async () => {
        const first = await there.lock('account:1');
        expect(await here.tryLock('account:1', { wait: 20 })).toBeNull();
        const terms = { maxWaiters: 2, fair: true };
        const waiters = [here.lock('account:1', terms), here.lock('account:1', terms)];
        await backing.waiters('account:1', 2);
        await expect(here.lock('account:1', terms)).rejects.toMatchObject({ reason: 'too-many-waiters' });
        await expect(there.lock('account:1', { maxWaiters: 0 })).rejects.toMatchObject({ reason: 'too-many-waiters' });
        await backing.waiters('account:1', 2);
        await first.unlock();
        await (await waiters[0]!).unlock();
        await (await waiters[1]!).unlock();
      });

      it('one waiter more than `maxWaiters` is refused at once', async () => {
        const first = await there.lock('account:1');
        const waiters = [here.lock('account:1', { maxWaiters: 2 }), here.lock('account:1', { maxWaiters: 2 })];
        await until(() =>
          here.lock('account:1', { maxWaiters: 2, wait: 1 }).then(
            () => false,
            (error: LockTimeoutError) => error.reason === 'too-many-waiters',
          ),
        );
        await first.unlock();
        await (await waiters[0]!).unlock();
        await (await waiters[1]!).unlock();
      });
    });

    describe('tryLock', () => {
      it('tryLock returns the lock of a free key, and null when the key is held', async () => {
        const lock = await here.tryLock('account:1');
        expect(lock?.isHeld).toBe(true);
        expect(await here.tryLock('account:1')).toBeNull();
        expect(await there.tryLock('account:1')).toBeNull();
      });

      it('tryLock waits when it has a `wait`', async () => {
        const lock = await here.lock('account:1');
        const waiting = there.tryLock('account:1', { wait: '5s' });
        await lock.unlock();
        expect((await waiting)?.isHeld).toBe(true);
      });
    });

    describe('unlock', () => {
      it('unlock may be called again', async () => {
        const lock = await here.lock('account:1');
        expect(await lock.unlock()).toBe(true);
        const other = await there.lock('account:1');
        expect(await lock.unlock()).toBe(true);
        expect(other.isHeld).toBe(true);
        expect(await there.isLocked('account:1')).toBe(true);
      });

      it('unlock never releases a lock that expired and was acquired by another caller', async () => {
        const late = await here.lock('account:1', { lease: 100, watchdog: false });
        const owner = await there.lock('account:1');
        expect(await late.unlock()).toBe(false);
        expect(await there.isLocked('account:1')).toBe(true);
        expect(await owner.unlock()).toBe(true);
      });

      it('an `await using` block unlocks at its end', async () => {
        {
          await using lock = await here.lock('account:1');
          expect(await here.isLocked(lock.key)).toBe(true);
        }
        expect(await here.isLocked('account:1')).toBe(false);
      });
    });

    describe('lease and watchdog', () => {
      it('the watchdog keeps a lock for much longer than its lease while the work runs', async () => {
        const lock = await here.lock('account:1', { lease: 1000 });
        await expect(there.lock('account:1', { wait: 2500 })).rejects.toBeInstanceOf(LockTimeoutError);
        expect(lock.isHeld).toBe(true);
        expect(await lock.unlock()).toBe(true);
      }, 15_000);

      it('a lock without a watchdog ends at its lease, and its signal aborts', async () => {
        const startedAt = performance.now();
        const lock = await here.lock('account:1', { lease: 200, watchdog: false });
        const reason = await aborted(lock.signal);
        expect(performance.now() - startedAt).toBeGreaterThan(150);
        expect(reason).toBeInstanceOf(LockLostError);
        expect(reason).toMatchObject({ reason: 'expired', keys: ['account:1'] });
        expect(lock.isHeld).toBe(false);
        expect(() => lock.assertHeld()).toThrow(LockLostError);
        expect((await there.lock('account:1')).isHeld).toBe(true);
      });

      it('the watchdog stops renewing after `maxHold`', async () => {
        const lock = await here.lock('account:1', { lease: 400, maxHold: 450 });
        const reason = await aborted(lock.signal);
        expect(reason).toMatchObject({ reason: 'expired' });
        expect((reason as LockLostError).heldMs).toBeGreaterThan(450);
        expect((await there.lock('account:1')).isHeld).toBe(true);
      });

      it('extend renews a lease at once, also with another length', async () => {
        const lock = await here.lock('account:1', { lease: 2000, watchdog: false });
        await lock.extend('10s');
        expect(lock.remaining()).toBeGreaterThan(5000);
        await lock.extend();
        expect(lock.remaining()).toBeGreaterThan(5000);
        await lock.unlock();
        await expect(lock.extend()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'unlocked' });
      });

      it('the work sees the loss on its first line after a stall that was longer than the lease', async () => {
        const lock = await here.lock('account:1', { lease: 100 });
        const { signal } = lock;
        standStill(150);
        expect(() => lock.assertHeld()).toThrow(
          expect.objectContaining({ detail: expect.stringMatching(/Lost lock "account:1"/) }),
        );
        expect(signal.aborted).toBe(true);
      });

      it('withLock throws LockLostError after a loss, with the error of the work as its cause', async () => {
        const lease = { lease: 100, watchdog: false } as const;
        await expect(here.withLock('account:1', (lock) => aborted(lock.signal), lease)).rejects.toMatchObject({
          code: 'LOCK_LOST',
        });
        const own = new Error('mine');
        const failing = here.withLock(
          'account:1',
          (lock) => aborted(lock.signal).then(() => Promise.reject(own)),
          lease,
        );
        await expect(failing).rejects.toMatchObject({ code: 'LOCK_LOST', cause: own });
        await expect(
          here.withLock('account:1', (lock) => aborted(lock.signal).then(() => 'done'), { ...lease, onLost: 'ignore' }),
        ).resolves.toBe('done');
      });
    });

    describe('fence', () => {
      it('the fence grows with every grant of a key, whoever gets it and however the lock before ended', async () => {
        const fences: number[] = [];
        for (const who of [here, there, here]) fences.push(await who.withLock('account:1', ({ fence }) => fence));
        const lost = await here.lock('account:1', { lease: 100, watchdog: false });
        fences.push(lost.fence, (await there.lock('account:1')).fence);
        expect(await there.forceUnlock('account:1')).toBe(true);
        fences.push(await there.withLock(['account:2', 'account:3'], ({ fence }) => fence));
        expect(fences.every(Number.isSafeInteger)).toBe(true);
        expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
      });
    });

    it('each hand-off in a process gives a larger fence, and the next process gets a larger one still', async () => {
      const fences: number[] = [];
      const note = ({ fence }: Lock) => void fences.push(fence);
      await Promise.all([here, there].map((who) => who.withLock('account:2', () => undefined)));
      await Promise.all(Array.from({ length: 40 }, () => here.withLock('account:1', note)));
      await there.withLock('account:1', note);
      expect(new Set(fences).size).toBe(41);
      expect(fences).toEqual([...fences].sort((a, b) => a - b));
    });

    describe('several keys', () => {
      it('a call for several keys acquires all of them or none', async () => {
        const b = await there.lock('b');
        expect(await here.tryLock(['a', 'b', 'c'])).toBeNull();
        expect(await there.isLocked('a')).toBe(false);
        await b.unlock();
        const all = await here.lock(['c', 'a', 'b', 'a']);
        expect(all.keys).toEqual(['a', 'b', 'c']);
        expect(await there.tryLock('c')).toBeNull();
        await all.unlock();
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('callers that name several keys in opposite order do not deadlock', async () => {
        const work = turn;
        const calls = Array.from({ length: 20 }, (_, index) =>
          (index % 2 ? here : there).withLock(index % 3 ? ['a', 'b'] : ['b', 'a'], work),
        );
        await Promise.all(calls);
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('a lock on several keys is lost as a whole when one of them is lost', async () => {
        const lock = await here.lock(['a', 'b'], { lease: 1000 });
        await there.forceUnlock('b');
        expect(await aborted(lock.signal)).toMatchObject({ reason: 'taken', keys: ['a', 'b'] });
      });
    });

    describe('nested calls', () => {
      it('nested calls enter at once on a key that they hold, and only the outermost end frees it', async () => {
        await here.withLock('account:1', async (outer) => {
          await here.withLock('account:1', (inner) => expect(inner.fence).toBe(outer.fence), { wait: 0 });
          expect(await there.isLocked('account:1')).toBe(true);
          expect(outer.isHeld).toBe(true);
        });
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('nested calls that are siblings exclude each other', async () => {
        let inside = 0;
        const sibling = () =>
          here.withLock('account:1', async () => {
            expect(++inside).toBe(1);
            await turn();
            inside--;
          });
        await here.withLock('account:1', () => Promise.all([sibling(), sibling(), sibling()]));
      });

      it('a nested call acquires the lock anew when it outlives its parent call', async () => {
        const first = deferred();
        let detached: Promise<unknown> | undefined;
        await here.withLock('account:1', async () => {
          void here.withLock('account:1', () => first.promise).catch(() => undefined);
          detached = here.withLock('account:1', (lock) =>
            here.isLocked('account:1').then((locked) => locked && lock.isHeld),
          );
          await turn();
        });
        first.resolve();
        expect(await detached).toBe(true);
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('a nested call loses the lock when its parent call ends before it', async () => {
        const outerEnded = deferred();
        let nested: Promise<unknown> | undefined;
        await here.withLock(['account:1', 'account:2'], async () => {
          const checking = here.withLock('account:1', (lock) => aborted(lock.signal).then(() => lock.assertHeld()));
          const ignoring = here.withLock('account:2', () => outerEnded.promise);
          nested = Promise.allSettled([checking, ignoring]);
          await turn();
        });
        outerEnded.resolve();
        const lost = { status: 'rejected', reason: { code: 'LOCK_LOST', reason: 'unlocked' } };
        expect(await nested).toMatchObject([lost, lost]);
      });

      it('a nested call with reentrant: false throws instead of waiting for itself', async () => {
        await here.withLock('account:1', () =>
          expect(here.withLock('account:1', () => undefined, { reentrant: false })).rejects.toBeInstanceOf(
            LockOptionsError,
          ),
        );
      });

      it('a nested call throws when it asks for more keys than its parent call, instead of a deadlock', async () => {
        await here.withLock('a', () => expect(here.lock(['a', 'b'])).rejects.toBeInstanceOf(LockOptionsError));
      });

      it('current() returns the lock of the async context', async () => {
        expect(here.current()).toBeUndefined();
        await here.withLock('a', (a) =>
          here.withLock('b', (b) => {
            expect(here.current()).toBe(b);
            expect(here.current('a')).toBe(a);
            expect(here.current('c')).toBeUndefined();
            expect(there.current()).toBeUndefined();
          }),
        );
      });
    });

    describe('operators', () => {
      it('operators see whether a key is locked, and can release it: the old holder loses it', async () => {
        const lock = await here.lock('account:1', { lease: 3000 });
        expect(await there.isLocked('account:1')).toBe(true);
        expect(await there.forceUnlock('account:1')).toBe(true);
        expect(await there.forceUnlock('account:1')).toBe(false);
        expect((await there.lock('account:1')).isHeld).toBe(true);
        expect(await aborted(lock.signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
      });

      it('operators release only the lock of the token that they name', async () => {
        const { token } = await here.lock('account:1');
        expect(await there.forceUnlock('account:1', { token: 'of somebody else.1' })).toBe(false);
        expect(await there.forceUnlock('account:1', { token })).toBe(true);
        const next = await here.lock('account:1');
        expect(await there.forceUnlock('account:1', { token })).toBe(false);
        expect(await next.unlock()).toBe(true);
      });

      inQueue('operators that take the same lock at once are told which of them did', async () => {
        const { token } = await here.lock('account:1');
        const taken = [here, there, here, there].map((locks) => locks.forceUnlock('account:1', { token }));
        expect((await Promise.all(taken)).filter(Boolean)).toHaveLength(1);
      });

      it.each<[string, (lock: Lock) => Promise<string>]>([
        ['saw with inspect()', () => holderOf('account:1')],
        ['read of the lock', async ({ token }) => token],
      ])(
        'operators never take a lock from the next caller of the same process by the token that they %s',
        async (_where, tokenOf) => {
          const [first, second] = [here.lock('account:1'), here.lock('account:1')];
          const token = await tokenOf(await first);
          await (await first).unlock();
          const next = await second;
          const taken = await there.forceUnlock('account:1', { token });
          expect(await next.unlock()).toBe(true);
          // A slow node of a quorum may not have heard yet that the one before gave it back.
          if (queues) expect(taken).toBe(false);
        },
      );

      inQueue('operators tell the holder who took its lock, and why', async () => {
        const first = await there.lock('account:1');
        // Who has waited can hear.
        const waiting = here.lock('account:1', { lease: '30s' });
        await backing.waiters('account:1', 1);
        await first.unlock();
        const lock = await waiting;
        const told: LockEvent[] = [];
        there.events.subscribe((event) => told.push(event));
        const forced = { by: 'ops "Ö"', reason: 'stuck: 100 %\nsince noon' };
        expect(await there.forceUnlock('account:1', { token: lock.token, ...forced })).toBe(true);
        expect(told).toEqual([
          { type: 'forced', keys: ['account:1'], tokens: [lock.token], token: lock.token, ...forced },
        ]);
        const error = (await aborted(lock.signal)) as LockLostError;
        expect(error).toMatchObject({ code: 'LOCK_LOST', reason: 'taken', forced });
        expect(error.detail).toContain(
          `${JSON.stringify(forced.by)} took it away with forceUnlock(), because ${JSON.stringify(forced.reason)}.`,
        );
      });

      it('operators learn whom they took a lock from', async () => {
        const lock = await here.lock('account:1');
        const told: LockEvent[] = [];
        there.events.subscribe((event) => told.push(event));
        expect(await there.forceUnlock('account:1')).toBe(true);
        expect(told).toMatchObject([{ type: 'forced', token: undefined, tokens: [lock.token] }]);
      });

      inQueue('operators tell a holder at once that had to ask for its lock several times', async () => {
        const first = await there.lock('b');
        const waiting = here.lock(['a', 'b'], { lease: '5m', watchdog: false });
        await backing.waiters('b', 1);
        await first.unlock();
        const lock = await waiting;
        expect(await there.forceUnlock('b')).toBe(true);
        expect(await aborted(lock.signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
      });

      it.each([
        [{ token: undefined }],
        [{ token: '' }],
        [{ by: '' }],
        [{ reason: 'x'.repeat(201) }],
        [{ why: 'x' }],
        ['ops'],
        [null],
      ])('operators are refused with the options %p', async (options) => {
        await expect(there.forceUnlock('account:1', options as ForceUnlockOptions)).rejects.toBeInstanceOf(
          LockOptionsError,
        );
      });

      it('withLock throws when a loss shows only at the release', async () => {
        const work = () => there.forceUnlock('account:1');
        await expect(here.withLock('account:1', work, { lease: '30s' })).rejects.toMatchObject({
          code: 'LOCK_LOST',
          reason: 'taken',
        });
      });
    });

    describe('shutdown', () => {
      it('a shutdown waits for held locks, and refuses new calls and waiters', async () => {
        const service = lockService(backing.store(), { shutdownGrace: '10s' });
        const lock = await service.lock('account:1');
        const waiting = expect(service.lock('account:1')).rejects.toBeInstanceOf(LockUnavailableError);
        await turn();
        const closed = service.close();
        await waiting;
        await expect(service.lock('account:2')).rejects.toHaveProperty(
          'detail',
          expect.stringMatching(/shutting down/),
        );
        expect(await there.isLocked('account:1')).toBe(true);
        await lock.unlock();
        await closed;
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('a shutdown releases the locks that are still held when the grace is over', async () => {
        const service = lockService(backing.store(), { shutdownGrace: 0 });
        const lock = await service.lock('account:1');
        const reason = aborted(lock.signal);
        await service.close();
        expect(await reason).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('a shutdown waits for the work of a lock that has lost one of its keys, and keeps the others for it', async () => {
        const service = lockService(backing.store(), { shutdownGrace: '10s' });
        const lock = await service.lock(['a', 'b']);
        const lost = aborted(lock.signal);
        await there.forceUnlock('a');
        await lost;
        let isClosed = false;
        const closed = service.close().then(() => (isClosed = true));
        expect(await there.isLocked('b')).toBe(true);
        await turn();
        expect(isClosed).toBe(false);
        await lock.unlock();
        await closed;
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('a shutdown releases what is left of a lock that has lost one of its keys when the grace is over', async () => {
        const service = lockService(backing.store(), { shutdownGrace: 0 });
        const lock = await service.lock(['a', 'b']);
        const lost = aborted(lock.signal);
        await there.forceUnlock('a');
        await lost;
        await service.close();
        expect(await backing.lockKeys()).toEqual([]);
      });
    });

    describe('bad input', () => {
      it.each([[''], [[]], [['a', '']], [42], [null], [undefined], [{}], ['k'.repeat(1025)]])(
        'a lock refuses the key %j',
        async (key) => {
          await expect(here.lock(key as string)).rejects.toBeInstanceOf(LockKeyError);
        },
      );

      it.each([
        [{ wait: -1 }, /"wait" is -1/],
        [{ wait: 'soon' }, /"wait" is "soon"/],
        [{ lease: 99 }, /"lease" is 99, but must be a duration of at least 100 ms/],
        [{ lease: Infinity }, /"lease"/],
        [{ maxWaiters: 1.5 }, /"maxWaiters" is 1.5/],
        [{ watchdog: 'yes' }, /"watchdog" is "yes", but must be true or false/],
        [{ signal: {} }, /"signal"/],
        [{ retries: 3 }, /There is no option "retries"\. Known options: wait, lease/],
      ])('a lock refuses the options %j', async (options, message) => {
        await expect(here.lock('account:1', options as object)).rejects.toThrow(message);
        await expect(here.lock('account:1', options as object)).rejects.toBeInstanceOf(LockOptionsError);
      });
    });
  });
}
