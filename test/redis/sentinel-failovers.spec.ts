import { describe, expect, it } from '@jest/globals';
import { aborted, until } from '../support/deferred.js';
import type { SentinelServer } from '../support/redis/redis-sentinel.js';
import { BehindSentinel, LEASE_MS } from '../support/redis/with-sentinel.js';
import { lockInTheEnd } from '../support/stores/lock-in-the-end.js';

/** More than the sockets between a master and its replicas hold. */
const MORE_THAN_FITS = 'x'.repeat(32 * 1024 * 1024);

describe('Behind Sentinel', () => {
  const behind = BehindSentinel.forAll();

  /** What is done meanwhile reaches no replica, if the master dies right after it. */
  async function behindTheReplicas<T>(work: () => Promise<T>): Promise<T> {
    const { redis } = await behind.sentinel.master();
    for (const { pid } of await behind.sentinel.replicas()) process.kill(pid, 'SIGSTOP');
    await redis.set('filler', MORE_THAN_FITS);
    return work();
  }

  async function killMasterAhead(): Promise<SentinelServer> {
    const replicas = await behind.sentinel.replicas();
    const next = behind.sentinel.killMaster();
    for (const { pid } of replicas) process.kill(pid, 'SIGCONT');
    return next;
  }

  describe.each(behind.connections)('with %s', (_what, connection) => {
    it('known locks stay after a failover, others are lost at once, waiters go on, and fences grow', async () => {
      const [here, there] = [behind.service(connection()), behind.service(connection())];
      const known = await here.lock('known');
      const waiting = there.lock('known', { fair: true });
      await behind.queued('known');
      await there.withLock('counted', () => undefined);
      await behind.replicated();
      const { lost, fences } = await behindTheReplicas(async () => {
        const lost = await here.lock('unknown', { lease: '1m' });
        const fences: number[] = [];
        for (let times = 0; times < 20; times++)
          fences.push(await there.withLock('counted', ({ fence }) => fence, { fair: true }));
        return { lost, fences };
      });
      expect(lost.isHeld).toBe(true);
      const { redis } = await killMasterAhead();
      const namedAt = performance.now();
      expect(await redis.exists('lock:unknown')).toBe(0);

      // Connecting again takes up to a second, looking a round trip; its next renewal is 20 s away.
      expect(await aborted(lost.signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
      expect(performance.now() - namedAt).toBeLessThan(3000);
      await until(async () => (await redis.pttl('lock:known')) > LEASE_MS * 0.9, 8000);
      expect(known.isHeld).toBe(true);

      const [counted, again] = [await lockInTheEnd(there, 'counted'), await lockInTheEnd(there, 'unknown')];
      expect(counted.fence).toBeGreaterThan(fences.at(-1)!);
      expect(again.fence).toBeGreaterThan(lost.fence);
      expect(await known.unlock()).toBe(true);
      expect((await waiting).fence).toBeGreaterThan(known.fence);
    }, 40_000);

    it('locks survive a failover that an operator asks for as well', async () => {
      const [here, there] = [behind.service(connection()), behind.service(connection())];
      const held = await behind.service(behind.sentinel.connection).lock('held');
      const waiting = there.lock('held', { fair: true });
      await behind.queued('held');
      await behind.replicated();
      const { redis } = await behind.sentinel.failover();
      await until(async () => (await redis.pttl('lock:held')) > LEASE_MS * 0.9, 12_000);
      expect(held.isHeld).toBe(true);
      expect(await held.unlock()).toBe(true);
      expect((await waiting).fence).toBeGreaterThan(held.fence);
      // The old master may give locks until it is told that it is a replica now, and hangs up.
      await until(async () => {
        const other = await lockInTheEnd(here, 'other');
        const isThere = (await redis.exists('lock:other')) === 1;
        await other.unlock();
        return isThere;
      }, 15_000);
    }, 40_000);
  });
});
