import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockUnavailableError } from 'nest-redis-lock';
import { nextTurn } from '../../lib/clock/next-turn.js';
import { NotAskedError, NotSentError, RefusedError } from '../../lib/redis/connection/connection-errors.js';
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

  it('orphans of one test are released in the next one, and not kept for as long as its fake time was ahead', async () => {
    const [release, keep] = [jest.fn(async () => 1), jest.fn(async () => 1)];
    const orphans = new Orphans(release, keep);
    const inFakeTime = performance.now();
    jest.advanceTimersByTime(3_600_000);
    orphans.add(lock, 1);
    jest.useRealTimers();
    jest.useFakeTimers();
    expect(performance.now()).toBeLessThan(inFakeTime + 3_600_000);
    await orphans.reconnected();
    expect([release.mock.calls.length, keep.mock.calls.length]).toEqual([1, 0]);
    orphans.add({ ...lock, token: 'a.2' }, 1);
    await jest.advanceTimersByTimeAsync(500);
    expect(release).toHaveBeenCalledTimes(2);
  });

  it('orphans that Redis refuses after a long outage are asked again every 2 s, too', async () => {
    const release = jest.fn<() => Promise<number>>().mockRejectedValue(new Error('no reply'));
    const orphans = new Orphans(release, async () => 0);
    orphans.add({ ...lock, leaseMs: 600_000 }, 1);
    await jest.advanceTimersByTimeAsync(25_000);
    release.mockRejectedValueOnce(new RefusedError('refused', new Error('NOREPLICAS'))).mockResolvedValue(1);
    release.mockClear();
    await orphans.reconnected();
    await jest.advanceTimersByTimeAsync(2_500);
    expect(release).toHaveBeenCalledTimes(2);
  });

  it('orphans that were given up are released when the reply to their command comes at last', async () => {
    const release = jest.fn(async () => 0);
    const orphans = new Orphans(release, async () => 0);
    orphans.add(lock, 1);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(jest.getTimerCount()).toBe(0);
    const attempts = release.mock.calls.length;
    release.mockResolvedValue(1);
    orphans.repliedLate(lock);
    await jest.advanceTimersByTimeAsync(500);
    expect(release).toHaveBeenCalledTimes(attempts + 1);
    expect(jest.getTimerCount()).toBe(0);
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

  it('orphans are kept for a lease after Redis has refused to release them, however long it refuses', async () => {
    const refused = new RefusedError('refused', new Error('NOREPLICAS Not enough good replicas to write.'));
    const release = jest.fn(async () => Promise.reject<number>(refused));
    const orphans = new Orphans(release, async () => 0);
    orphans.add(lock, 1);
    await jest.advanceTimersByTimeAsync(20_000);
    expect(jest.getTimerCount()).toBe(0);
    expect(release.mock.calls.length).toBeLessThan(6);
  });

  it.each([
    ['Redis has refused', new RefusedError('refused', new Error('NOREPLICAS Not enough good replicas to write.'))],
    ["the app's client was in use for something else", new NotAskedError('in another database')],
  ])('orphans are released soon after %s for a while: nothing else tells that it is over', async (_what, error) => {
    const release = jest.fn(async () => Promise.reject<number>(error));
    const orphans = new Orphans(release, async () => 0);
    orphans.add(lock, 1, { leaseMs: 30_000 });
    await jest.advanceTimersByTimeAsync(9000);
    release.mockClear().mockResolvedValue(1);
    await jest.advanceTimersByTimeAsync(2500);
    expect(release).toHaveBeenCalledTimes(1);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(release).toHaveBeenCalledTimes(1);
  });

  it('orphans that Redis refused are not tried at each new connection, which a refusal may bring about', async () => {
    const refused = new RefusedError('refused', new Error("READONLY You can't write against a read only replica."));
    const release = jest.fn(async () => Promise.reject<number>(refused));
    const orphans = new Orphans(release, async () => 0);
    orphans.add(lock, 1, { leaseMs: 30_000 });
    await orphans.reconnected();
    release.mockClear();
    for (let times = 0; times < 10; times++) await orphans.reconnected();
    expect(release).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1000);
    expect(release).toHaveBeenCalled();
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

  describe('of a Redis that replies too late each time', () => {
    const late = async () => Promise.reject<number>(new LockUnavailableError('late'));

    it.each<[string, (orphans: Orphans) => void]>([
      ['has answered on a new connection', (orphans) => orphans.answeredAnew()],
      ['has replied late to an attempt', (orphans) => orphans.attemptRepliedLate(lock)],
      ['has replied late to what acquires them', (orphans) => orphans.repliedLate(lock)],
    ])('orphans are given up a lease after it %s, and not before', async (_what, showLife) => {
      const release = jest.fn(late);
      const orphans = new Orphans(release, late);
      orphans.add(lock, 1, { leaseMs: 20_000 });
      await jest.advanceTimersByTimeAsync(60_000);
      showLife(orphans);
      await jest.advanceTimersByTimeAsync(19_000);
      release.mockClear();
      await orphans.reconnected();
      expect(release).toHaveBeenCalledTimes(1);
      await jest.advanceTimersByTimeAsync(2000);
      expect(jest.getTimerCount()).toBe(0);
    });

    it('orphans that must stay are kept until then', async () => {
      const keep = jest.fn(late);
      const orphans = new Orphans(late, keep);
      orphans.add(lock, 1, { keepMs: 60_000 });
      orphans.answeredAnew();
      await jest.advanceTimersByTimeAsync(55_000);
      keep.mockClear();
      await orphans.reconnected();
      expect(keep).toHaveBeenCalledTimes(1);
      await jest.advanceTimersByTimeAsync(6000);
      expect(jest.getTimerCount()).toBe(0);
    });
  });

  describe('in a crowd', () => {
    const crowd = Array.from({ length: 3000 }, (_, index) => ({ ...lock, token: `a.${index}` }));
    /** Resolves when all that has its reply has been dealt with, and a next group may have been tried. */
    const turns = async () => {
      for (let turns = 0; turns < 3; turns++) await nextTurn();
    };

    it('orphans are tried in groups, each of which waits for the one before', async () => {
      const waiting: (() => void)[] = [];
      const release = jest.fn(() => new Promise<number>((resolve) => waiting.push(() => resolve(1))));
      const orphans = new Orphans(release, async () => 0);
      for (const one of crowd) orphans.add(one, 1);
      const sizes: number[] = [];
      const done = orphans.reconnected();
      for (; release.mock.calls.length < crowd.length; await turns()) {
        sizes.push(waiting.length);
        for (const reply of waiting.splice(0)) reply();
      }
      for (const reply of waiting) reply();
      await done;
      expect(Math.max(...sizes)).toBe(512);
      await jest.advanceTimersByTimeAsync(1000);
      expect(jest.getTimerCount()).toBe(0);
    });

    it('orphans whose attempt was the last come last when Redis is back again', async () => {
      const tried = new Set<unknown>();
      let isDown = false;
      const release = jest.fn(async (one: unknown) => {
        tried.add(one);
        isDown = true;
        throw new LockUnavailableError('late');
      });
      const orphans = new Orphans(
        release,
        async () => 0,
        () => isDown,
      );
      for (const one of crowd) orphans.add(one, 1);
      for (let connections = 0; connections < 6; connections++) {
        isDown = false;
        await orphans.reconnected();
      }
      expect(release.mock.calls.length).toBeLessThan(crowd.length + 512);
      expect(tried.size).toBe(crowd.length);
    });

    it('orphans are not tried while each attempt would fail at once, and yet given up in time', async () => {
      const release = jest.fn(async () => 0);
      const orphans = new Orphans(
        release,
        async () => 0,
        () => true,
      );
      for (const one of crowd) orphans.add(one, 1);
      orphans.answeredAnew();
      await jest.advanceTimersByTimeAsync(6000);
      expect(release).not.toHaveBeenCalled();
      expect(jest.getTimerCount()).toBe(0);
    });
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
