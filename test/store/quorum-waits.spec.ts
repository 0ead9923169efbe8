import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { Busy, Granted } from 'nest-redis-lock';
import { QuorumLockStore } from '../../lib/store/quorum/quorum-lock.store.js';
import { QuorumTurns } from '../../lib/store/quorum/quorum-turns.js';
import { until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { MemoryNode } from '../support/stores/memory-node.js';

describe('A caller of a quorum that waits for a short time', () => {
  const open: ClosableLockService[] = [];

  afterEach(async () => {
    jest.restoreAllMocks();
    jest.useRealTimers();
    await Promise.all(open.splice(0).map((service) => service.close()));
  });

  const asked = (keys: string[], waitsUntil?: number) =>
    ({
      keys,
      token: `${keys[0]}-${waitsUntil}`,
      leaseMs: 60_000,
      sharing: 'exclusive',
      label: undefined,
      queue: true,
      waitsUntil,
    }) as const;

  it('a waiter gets a free key although it is left to others, which have given up', async () => {
    // Its last try is 5 ms before its wait is over: a stalled process would miss that.
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    const nodes = [0, 1, 2].map(() => new MemoryNode());
    const [here, there] = [0, 1].map(() => lockService(new QuorumLockStore(nodes), { shutdownGrace: 0 })) as [
      ClosableLockService,
      ClosableLockService,
    ];
    open.push(here, there);
    for (let round = 0; round < 3; round++) {
      const held = await here.lock('a');
      const refused = expect(there.lock('a', { wait: 20 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      await jest.advanceTimersByTimeAsync(20);
      await refused;
      await held.unlock();
      // It is the turn of others for 160 ms.
      const again = here.lock('a', { wait: 100 });
      again.catch(() => undefined);
      await jest.advanceTimersByTimeAsync(100);
      await (await again).unlock();
    }
  });

  it('a waiter gets several keys, though other callers of its process use each of them again and again', async () => {
    const nodes = [0, 1, 2].map(() => new MemoryNode());
    const [here, there] = [0, 1].map(() => lockService(new QuorumLockStore(nodes), { shutdownGrace: 0 })) as [
      ClosableLockService,
      ClosableLockService,
    ];
    open.push(here, there);
    let isIn = false;
    const uses = { a: 0, b: 0, c: 0 };
    const use = async (key: 'a' | 'b' | 'c') => {
      for (; !isIn; uses[key]++) await here.withLock(key, () => sleep(3));
    };
    const users = (['a', 'b', 'c'] as const).map(use);
    const held = await there.lock('a');
    const all = here.withLock(['a', 'b', 'c'], () => undefined, { wait: 5000 }).finally(() => (isIn = true));
    await until(() => Math.min(uses.b, uses.c) >= 10);
    await held.unlock();
    await all;
    await Promise.all(users);
  });

  it('a waiter asks once more just before its wait is over', async () => {
    const nodes = [0, 1, 2].map(() => new MemoryNode());
    const store = new QuorumLockStore(nodes);
    await Promise.all(nodes.map((node) => node.acquire({ ...asked(['a']), token: 'theirs', queue: false })));
    const time = performance.now();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(time);
    const delay = async (waitsUntil: number) => ((await store.acquire(asked(['a'], waitsUntil))) as Busy).leaseLeftMs;
    expect(await delay(time + 15)).toBe(10);
    for (let tries = 0; tries < 20; tries++) expect(await delay(time + 60_000)).toBeGreaterThanOrEqual(20);
    // That was the last one.
    expect(await delay(time + 1)).toBeGreaterThan(1);
    clock.mockRestore();
    await store.close();
  });
});

describe('A process that has released a lock of a quorum, and heard of nobody who waits for it', () => {
  const command = { keys: ['a'], leaseMs: 60_000, sharing: 'exclusive', label: undefined, queue: true } as const;

  afterEach(() => void jest.restoreAllMocks());

  /** What its next caller is told, while so many of three nodes can't notify it. */
  const askedAgain = async (unsubscribed: number): Promise<Granted | Busy> => {
    const nodes = [0, 1, 2].map(() => new MemoryNode());
    for (const node of nodes.slice(0, unsubscribed)) node.isUnsubscribed = true;
    const store = new QuorumLockStore(nodes);
    // A whole number, so that differences are exact.
    jest.spyOn(performance, 'now').mockReturnValue(Math.ceil(performance.now()));
    const { token } = (await store.acquire({ ...command, token: 'caller.1' })) as Granted;
    await store.release({ ...command, token: token! });
    const reply = await store.acquire({ ...command, token: 'caller.2' });
    await store.close();
    return reply;
  };

  it('a process leaves the key to others for a turn if it has no subscription to a majority of the nodes', async () => {
    expect(await askedAgain(2)).toMatchObject({ granted: false, leaseLeftMs: 160 });
  });

  it('a process may have the key again at once if it lacks only the subscription to a minority', async () => {
    expect(await askedAgain(1)).toMatchObject({ granted: true });
  });
});

describe('A caller of a quorum that is refused again and again', () => {
  const command = {
    keys: ['a'],
    token: 'one',
    leaseMs: 1000,
    sharing: 'exclusive',
    label: undefined,
    queue: true,
  } as const;

  /** How long it waits after each of 30 tries. */
  const delaysAt = (roundTripMs: number) => {
    const turns = new QuorumTurns();
    turns.replied(roundTripMs);
    return Array.from({ length: 30 }, () => turns.delayOf(command));
  };

  it('a refused caller waits some 40 to 100 ms when the nodes are near', () => {
    for (const delay of delaysAt(1)) {
      expect(delay).toBeGreaterThanOrEqual(20);
      expect(delay).toBeLessThanOrEqual(150);
    }
  });

  it('a refused caller waits more and more round trips when the nodes are far away', () => {
    const delays = delaysAt(200);
    expect(delays[0]).toBeLessThanOrEqual(60);
    for (const delay of delays.slice(20)) {
      expect(delay).toBeGreaterThanOrEqual(1000);
      expect(delay).toBeLessThanOrEqual(3000);
    }
  });

  it('a stall of the own process does not count as a long distance', () => {
    const turns = new QuorumTurns();
    for (const tookMs of [200, 1, 1, 80, 1]) turns.replied(tookMs);
    for (let tries = 0; tries < 30; tries++) expect(turns.delayOf(command)).toBeLessThanOrEqual(150);
  });

  it('one slow reply, of a node that stalled, does not count as a long distance', () => {
    const turns = new QuorumTurns();
    for (const tookMs of [1, 850]) turns.replied(tookMs);
    for (let tries = 0; tries < 30; tries++) expect(turns.delayOf(command)).toBeLessThanOrEqual(150);
  });

  it('a distance that has become longer counts in time', () => {
    const turns = new QuorumTurns();
    for (const tookMs of [1, ...Array.from({ length: 60 }, () => 200)]) turns.replied(tookMs);
    for (let tries = 0; tries < 20; tries++) turns.delayOf(command);
    expect(turns.delayOf(command)).toBeGreaterThanOrEqual(900);
  });
});
