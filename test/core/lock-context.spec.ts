import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Lock } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { LockContext, type LockNode } from '../../lib/core/nesting/lock-context.js';
import { NO_REQUESTS } from '../../lib/service/request-port.js';
import { deferred, turn } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { collectGarbage } from '../support/collect-garbage.js';

describe('The locks around running work', () => {
  const enter: (this: LockContext, lock: Lock) => LockNode = Reflect.get(LockContext.prototype, 'enter');
  let locks: ClosableLockService;
  let last: LockNode | undefined;
  let all: WeakRef<LockNode>[];
  const client = new AbortController();

  beforeEach(() => {
    [last, all] = [undefined, []];
    // Not a mock of Jest: that would keep all results.
    LockContext.prototype.enter = function (lock) {
      last = enter.call(this, lock);
      all.push(new WeakRef(last));
      return last;
    };
    locks = lockService(new MemoryLockStore(), { shutdownGrace: 0 });
  });

  afterEach(async () => {
    LockContext.prototype.enter = enter;
    await locks.close();
  });

  /** Each work starts the next one, and ends when that runs. Runs `inTheLast` when all but the last have ended. */
  async function chainOf(length: number, inTheLast: () => Promise<void>): Promise<void> {
    const isOver = deferred();
    const startWork = (number: number): Promise<void> =>
      new Promise((isRunning) => {
        const work = async () => {
          isRunning();
          if (number < length) return startWork(number + 1);
          await turn();
          await inTheLast();
          isOver.resolve();
        };
        locks.withLock(`k${number}`, work).catch(isOver.reject);
      });
    await startWork(1);
    await isOver.promise;
  }

  it('work that starts the next locked work while it runs keeps no chain of the locks that have ended', async () => {
    await chainOf(1000, async () => {
      let length = 0;
      for (let node = last; node; node = node.parent) length++;
      expect(length).toBe(1);
    });
  });

  it.each([
    ['outside of requests', NO_REQUESTS],
    ['in a request', { ...NO_REQUESTS, waitSignal: () => client.signal }],
  ])(
    'the locks that have ended are garbage, though work that they started still runs: %s',
    async (_where, requests) => {
      locks = lockService(new MemoryLockStore(), { shutdownGrace: 0 }, requests);
      await chainOf(1000, async () => {
        collectGarbage();
        expect(all.filter((node) => node.deref()).length).toBeLessThanOrEqual(10);
      });
    },
  );

  it('a lock that has ended hides none of those around it', async () => {
    const [ended, started] = [deferred(), deferred<() => void>()];
    await locks.withLock('outer', async () => {
      let inside!: Promise<readonly (string | undefined)[]>;
      await locks.withLock('middle', () => {
        inside = locks.withLock('inner', async () => {
          started.resolve(ended.resolve);
          await ended.promise;
          return ['outer', 'middle', 'inner'].map((key) => locks.current(key)?.key);
        });
        return started.promise;
      });
      ended.resolve();
      expect(await inside).toEqual(['outer', undefined, 'inner']);
    });
  });

  it.each([
    ['goes on', false],
    ['has ended', true],
  ])(
    'what waits for a stream that was left waits on as long as any work around does: it %s',
    async (_how, hasEnded) => {
      const context = new LockContext();
      const [client, isAround] = [new AbortController(), () => false];
      const [a, b, c] = await Promise.all([locks.lock('a'), locks.lock('b'), locks.lock('c')]);
      const outer = context.enter(a);
      const ended = context.run(outer, () => context.enter(b));
      const stream = context.run(ended, () => context.enter(c));
      const waits = stream.endOfWaits(client.signal, isAround);
      context.leave(ended);
      if (hasEnded) context.leave(outer);
      client.abort();
      context.leave(stream, true);
      await turn();
      await turn();
      expect(waits.aborted).toBe(hasEnded);
    },
  );

  it('of two services, each knows its own locks, and who leaves those of one leaves all', async () => {
    const others = lockService(new MemoryLockStore(), { shutdownGrace: 0 });
    await locks.withLock('a', (ofLocks) =>
      others.withLock('a', async (ofOthers) => {
        expect([locks.current(), others.current()]).toEqual([ofLocks, ofOthers]);
        await locks.withLock('a', () => undefined, { wait: 0 });
        await others.withLock('a', () => undefined, { wait: 0 });
        await ofOthers.unlock();
        expect([locks.current(), others.current()]).toEqual([ofLocks, undefined]);
        await others.withLock('a', () => {
          locks.outside(() => expect([locks.current(), others.current()]).toEqual([undefined, undefined]));
        });
      }),
    );
    await others.close();
  });

  it('a call inside another service knows that the work around it has lost its own lock', async () => {
    const others = lockService(new MemoryLockStore(), { shutdownGrace: 0 });
    const stranger = await locks.outside(() => locks.lock('b'));
    const error: unknown = await locks.withLock('a', async (lock) => {
      await lock.unlock();
      return others.withLock('a', () => locks.lock('b', { wait: 0 }).catch((error: unknown) => error));
    });
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', retryable: false });
    await stranger.unlock();
    await others.close();
  });
});
