import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockUnavailableError } from 'nest-redis-lock';
import { NotSentError } from '../../lib/redis/connection/connection-errors.js';
import { LateCopies } from '../../lib/redis/locks/late-copies.js';
import { Orphans } from '../../lib/redis/locks/orphans.js';

describe('Orphans', () => {
  const lock = { keys: ['a'], token: 'a.1', leaseMs: 1000, sharing: 'exclusive', label: undefined } as const;

  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('orphans are not tried any more once the store is closed, also those that its end cuts short', async () => {
    const release = jest.fn(async () => 0);
    const orphans = new Orphans(release, async () => 0);
    orphans.add(lock, 1);
    await orphans.close();
    expect(release).toHaveBeenCalledTimes(1);
    orphans.add(lock, 1);
    await orphans.reconnected();
    expect(jest.getTimerCount()).toBe(0);
    expect(release).toHaveBeenCalledTimes(1);
  });

  it('orphans are released as soon as Redis is back, also while an earlier attempt waits for its reply', async () => {
    let reply!: (freed: number) => void;
    const release = jest
      .fn<(lock: { readonly token: string }) => Promise<number>>()
      .mockRejectedValue(new Error('away'));
    const orphans = new Orphans(release, async () => 0);
    const [first, second] = [lock, { ...lock, token: 'a.2' }];
    orphans.add(first, 1);
    orphans.add(second, 1);
    release.mockImplementationOnce(() => new Promise((resolve) => (reply = resolve)));
    await jest.advanceTimersByTimeAsync(500);
    expect(release.mock.calls).toEqual([[first], [second]]);
    release.mockResolvedValue(1);
    const reconnected = orphans.reconnected();
    reply(1);
    await reconnected;
    await jest.advanceTimersByTimeAsync(0);
    expect(release.mock.calls.slice(2)).toEqual([[second]]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('orphans that must stay are kept until Redis confirms it, then released if copies may come', async () => {
    const release = jest.fn(async () => 1);
    const keep = jest.fn<(lock: unknown, keepMs: number) => Promise<number>>();
    keep.mockRejectedValueOnce(new Error('away')).mockResolvedValueOnce(1);
    const orphans = new Orphans(release, keep);
    orphans.add(lock, 2, { keepMs: 60_000 });
    await jest.advanceTimersByTimeAsync(1500);
    expect(keep.mock.calls).toEqual([
      [lock, 59_500],
      [lock, 59_000],
    ]);
    expect(release).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(2500);
    expect(keep).toHaveBeenCalledTimes(2);
    expect(release).toHaveBeenCalledTimes(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('orphans that had to stay are released when that time is over and Redis has not replied', async () => {
    const release = jest.fn(async () => 1);
    const keep = jest.fn(async () => Promise.reject<number>(new Error('away')));
    const orphans = new Orphans(release, keep);
    orphans.add(lock, 1, { keepMs: 1200 });
    await jest.advanceTimersByTimeAsync(1000);
    expect([keep.mock.calls.length, release.mock.calls.length]).toEqual([2, 0]);
    await jest.advanceTimersByTimeAsync(1000);
    expect([keep.mock.calls.length, release.mock.calls.length]).toEqual([2, 1]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('orphans are kept for as long as Redis does not reply, as what they wait for may still run then, and for a lease after', async () => {
    const release = jest.fn(async () => Promise.reject<number>(new Error('away')));
    const orphans = new Orphans(release, async () => 0);
    orphans.add(lock, 1);
    await jest.advanceTimersByTimeAsync(600_000);
    expect(release.mock.calls.length).toBeLessThan(40);
    release.mockClear().mockResolvedValue(0);
    await orphans.reconnected();
    await jest.advanceTimersByTimeAsync(600_000);
    expect(release).toHaveBeenCalledTimes(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('orphans that must stay are kept, not released, when the store is closed', async () => {
    const [release, keep] = [jest.fn(async () => 1), jest.fn(async () => 1)];
    const orphans = new Orphans(release, keep);
    orphans.add(lock, 1, { keepMs: 1000 });
    await orphans.close();
    expect([keep.mock.calls.length, release.mock.calls.length]).toEqual([1, 0]);
  });

  it('a lock whose release failed is tried for as long as it may last, also when it was acquired for less', async () => {
    const release = jest.fn(async () => Promise.reject<number>(new Error('away')));
    const redis = { epoch: 0 };
    const lateCopies = new LateCopies(redis, new Orphans(release, async () => 0));
    redis.epoch = 1;
    lateCopies.settled({ ...lock, queue: false }, 0);
    lateCopies.releaseFailed({ ...lock, leaseMs: 3_600_000 }, 0);
    await jest.advanceTimersByTimeAsync(60_000);
    release.mockClear().mockResolvedValue(1);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(release).toHaveBeenCalled();
  });

  it.each([
    ['its first command', 1, { queue: true }, new LockUnavailableError('no reply')],
    ['a later command', 2, { queue: true, isQueued: true }, new LockUnavailableError('no reply')],
    ['a later command that was not sent', 1, { queue: true, isQueued: true }, new NotSentError('not sent')],
  ])(
    'a waiter that gets no reply to %s is released until its lock has been freed this often: %i',
    async (_which, times, how, error) => {
      const release = jest.fn(async () => 1);
      const lateCopies = new LateCopies({ epoch: 0 }, new Orphans(release, async () => 0));
      lateCopies.failed({ ...lock, ...how, leaseMs: 600_000 }, 0, error);
      await jest.advanceTimersByTimeAsync(600_000);
      expect(release).toHaveBeenCalledTimes(times);
      expect(jest.getTimerCount()).toBe(0);
    },
  );
});
