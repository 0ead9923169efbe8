import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { CurrentLock, type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
import { aborted } from '../support/deferred.js';
import { ofAnotherProcess } from '../support/stores/other-process.js';

type Body = (lock: Lock) => unknown;

/** Each method holds the lock on `job` while it runs the body it is given. */
@Injectable()
class Jobs {
  @WithLock('job')
  async run(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { onLost: 'ignore' })
  async ignoringLoss(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { watchdog: false, lease: '100ms' })
  async forOneLease(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('job', { maxHold: 1, lease: '100ms' })
  async forOneMillisecond(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }
}

let module: TestingModule;
let jobs: Jobs;
let locks: LockService;
const store = new MemoryLockStore();

beforeAll(async () => {
  module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot({ store })],
    providers: [Jobs],
  }).compile();
  [jobs, locks] = [module.get(Jobs), module.get(LockService)];
});

afterEach(async () => expect(await locks.isLocked('job')).toBe(false));
afterAll(() => module.close());

describe('when the lock is lost while the body runs', () => {
  const losing = (after: () => unknown) => async () => {
    await locks.forceUnlock('job');
    return after();
  };

  it('a call whose lock is lost while the body runs rejects with LockLostError, by default', async () => {
    await expect(jobs.run(losing(() => 'done'))).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'taken',
      keys: ['job'],
    });
  });

  it('a call whose lock is lost while the body runs leaves the key to the one who took it', async () => {
    const taker = ofAnotherProcess('job');
    const call = jobs.run(losing(() => store.acquire(taker)));
    await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(await store.release(taker)).toBe(true);
  });

  it("a call whose lock is lost rejects with LockLostError, with the body's own error as its cause", async () => {
    const cause = new RangeError('mine');
    await expect(jobs.run(losing(() => Promise.reject(cause)))).rejects.toMatchObject({ code: 'LOCK_LOST', cause });
  });

  it("a call whose lock is lost returns the body's value with onLost: 'ignore', or throws its error", async () => {
    const error = new RangeError('mine');
    expect(await jobs.ignoringLoss(losing(() => 'done'))).toBe('done');
    await expect(jobs.ignoringLoss(losing(() => Promise.reject(error)))).rejects.toBe(error);
  });

  it.each([
    ['watchdog: false', 'forOneLease'],
    ['a maxHold that is over', 'forOneMillisecond'],
  ] as const)('a body hears by its signal of the end of the lease, with %s', async (_why, method) => {
    const reasons: unknown[] = [];
    const call = jobs[method](async ({ signal }) => reasons.push(await aborted(signal)));
    await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(reasons).toEqual([expect.objectContaining({ code: 'LOCK_LOST', reason: 'expired' })]);
  });
});
