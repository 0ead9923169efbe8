import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockOptionsError, LockUnavailableError, type LockStore, type RedisLockModuleOptions } from 'nest-redis-lock';
import type { OutageLog } from '../../lib/redis/connection/outage-log.js';
import { aborted, deferred, until } from '../support/deferred.js';
import { lockService, redisStore, trustingQuorum, type ClosableLockService } from '../support/stores/lock-services.js';
import { RedisServers } from '../support/redis/redis-servers.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';

const COMMAND_TIMEOUT_MS = 1000;
const KEY = 'account:1';

describe('On a quorum of five Redis', () => {
  let servers: RedisServers;
  const open: ClosableLockService[] = [];

  beforeAll(async () => {
    servers = await RedisServers.start(5);
  });

  afterEach(async () => {
    await Promise.all(open.splice(0).map((service) => service.close()));
    await servers.reset();
  });

  afterAll(() => servers.stop());

  function serviceOn(
    connection: readonly string[],
    options: RedisLockModuleOptions = {},
    log?: Partial<OutageLog>,
  ): ClosableLockService {
    return serviceWith(trustingQuorum(connection, COMMAND_TIMEOUT_MS, log), options);
  }

  function serviceWith(store: LockStore, options: RedisLockModuleOptions): ClosableLockService {
    const service = lockService(store, { wait: '20s', lease: '10s', shutdownGrace: 0, ...options });
    open.push(service);
    return service;
  }

  const warmed = (options?: RedisLockModuleOptions, log?: Partial<OutageLog>) =>
    warmUp(serviceOn(servers.urls, options, log));

  /** All its connections are up, and its subscriptions too, so that it hears that others wait. */
  async function warmUp(service: ClosableLockService): Promise<ClosableLockService> {
    const subscribers = async () =>
      (await Promise.all(servers.clients.map((client) => client.pubsub('CHANNELS', '*')))).map(
        (names) => (names as string[]).length,
      );
    await service.withLock('warm up', () => undefined);
    await until(async () => (await subscribers()).every((count) => count >= open.length));
    await servers.nothingLeft();
    return service;
  }

  /** A majority gives a lock; the others may still be connecting, or lack the script, and have it later. */
  const onAllNodes = (locks = 1) =>
    until(async () => (await servers.keys()).length === locks * servers.all.length).catch(async () => {
      throw new Error(`Not on all nodes, or not alone: ${(await servers.keys()).join(', ')}`);
    });

  const tookMs = async (work: () => Promise<unknown>) => {
    const startedAt = performance.now();
    await work();
    return performance.now() - startedAt;
  };

  describe('a lock', () => {
    it('a service that closes after the fake timers of a test waits for nothing of them', async () => {
      const locks = await warmed();
      jest.useFakeTimers();
      expect(await locks.withLock(KEY, () => true)).toBe(true);
      jest.useRealTimers();
      await locks.close();
    });

    it('a lock is on all nodes under its token, and gone from all when it is released', async () => {
      const locks = await warmed();
      const lock = await locks.lock(KEY);
      await until(async () =>
        (await Promise.all(servers.clients.map((client) => client.get(`lock:${KEY}`)))).every(
          (token) => token === lock.token,
        ),
      );
      expect(await locks.inspect(KEY)).toMatchObject({
        holder: { token: lock.token, fence: lock.fence, pid: process.pid, since: lock.acquiredAt },
        waiters: [],
      });
      expect(await lock.unlock()).toBe(true);
      await servers.nothingLeft();
      expect(await locks.inspect(KEY)).toBeNull();
    });

    it('a lock has another token with each try, also of one call', async () => {
      const [here, there] = [await warmed(), await warmed()];
      const tokens = new Set<string>();
      const held = await here.lock(KEY);
      await servers.clients[4]!.del(`lock:${KEY}`);
      const waiting = there.lock(KEY);
      await until(async () => {
        const token = await servers.clients[4]!.get(`lock:${KEY}`);
        if (token) tokens.add(token);
        return tokens.size >= 3;
      });
      await held.unlock();
      expect((await waiting).token).toMatch(/^[\w.-]+:\d+:[\w-]{16}\.[0-9a-z]+-[0-9a-z]+$/);
    });

    it('a lock is refused while others hold a majority, and is on no node after that', async () => {
      const locks = await warmed();
      for (const client of servers.clients.slice(0, 3)) await client.set(`lock:${KEY}`, 'theirs', 'PX', 60_000);
      expect(await locks.tryLock(KEY)).toBeNull();
      await until(async () => (await servers.keys()).length === 3);
      for (const client of servers.clients.slice(0, 3)) expect(await client.get(`lock:${KEY}`)).toBe('theirs');
    });

    it('a lock is acquired while others hold a minority', async () => {
      const locks = await warmed();
      for (const client of servers.clients.slice(0, 2)) await client.set(`lock:${KEY}`, 'theirs', 'PX', 60_000);
      expect(await locks.withLock([KEY, 'other'], ({ isHeld }) => isHeld)).toBe(true);
      await until(async () => (await servers.keys()).length === 2);
    });

    it('a lock that is released by force is reported to its holder, and its key is free at once', async () => {
      const [here, there] = [await warmed(), await warmed()];
      const lock = await here.lock(KEY, { lease: '1m' });
      expect(await there.forceUnlock(KEY, { token: lock.token, by: 'ops' })).toBe(true);
      expect(await aborted(lock.signal)).toMatchObject({ reason: 'taken', forced: { by: 'ops' } });
      expect((await there.lock(KEY, { wait: 0 })).fence).toBeGreaterThan(lock.fence);
    });

    it('the same for one that only a bare majority has, while one of these nodes hangs', async () => {
      const [here, there] = [await warmed(), await warmed()];
      for (const client of servers.clients.slice(0, 2)) await client.set(`lock:${KEY}`, 'theirs', 'PX', 60_000);
      const lock = await here.lock(KEY, { lease: '1m' });
      for (const client of servers.clients.slice(0, 2)) await client.del(`lock:${KEY}`);
      servers.hang(4);
      expect(await there.forceUnlock(KEY, { by: 'ops' })).toBe(true);
      expect(await aborted(lock.signal)).toMatchObject({ reason: 'taken', forced: { by: 'ops' } });
    });

    it('a lock that is released by force on a minority of the nodes is not lost', async () => {
      const locks = await warmed();
      const lock = await locks.lock(KEY, { lease: 1200 });
      await Promise.all(servers.clients.slice(0, 2).map((client) => client.del(`lock:${KEY}`)));
      let renewals = 0;
      let left = lock.remaining();
      await until(() => {
        if (lock.remaining() > left + 100) renewals++;
        left = lock.remaining();
        return renewals === 2 || !lock.isHeld;
      });
      expect(lock.isHeld).toBe(true);
      expect(await lock.unlock()).toBe(true);
    });

    it.each([
      [{ mode: 'read' }, /"mode" 'read' of lock "account:1".*common queue/],
      [{ permits: 3 }, /"permits"/],
      [{ fair: true }, /"fair"/],
    ] as const)('a lock of a quorum is refused with %j, as that is not possible', async (options, message) => {
      const locks = await warmed();
      await expect(locks.lock(KEY, options)).rejects.toBeInstanceOf(LockOptionsError);
      await expect(locks.tryLock(KEY, options)).rejects.toHaveProperty('detail', expect.stringMatching(message));
      expect(await servers.keys()).toEqual([]);
    });

    it('a lock does not become a reader by a downgrade that is refused', async () => {
      const locks = await warmed();
      await locks.withLock(KEY, async (lock) => {
        await expect(lock.downgrade()).rejects.toBeInstanceOf(LockOptionsError);
        await locks.withLock(KEY, (inner) => expect(inner.fence).toBe(lock.fence));
        expect(lock).toMatchObject({ mode: 'exclusive', isHeld: true });
      });
    });
  });

  describe('when nodes fail', () => {
    it('nobody waits for a node that hangs', async () => {
      const locks = await warmed();
      servers.hang(2);
      const took: number[] = [];
      for (let count = 0; count < 20; count++) took.push(await tookMs(() => locks.withLock(KEY, () => undefined)));
      expect(Math.max(...took)).toBeLessThan(COMMAND_TIMEOUT_MS / 2);
      // Not even the moment that the others get in a tie.
      expect(Math.min(...took)).toBeLessThan(20);
      servers.goOn(2);
      await servers.nothingLeft();
    });

    it('a node that makes connections, and runs no scripts for a while, is in the log once', async () => {
      const name = `127.0.0.1:${servers.all[2]!.port}`;
      const log: string[] = [];
      const noted = (what: string) => (server: string) => void (server === name && log.push(what));
      const terms = { connection: servers.urls, commandTimeout: 300, lease: 1000 };
      const store = redisStore(terms, { down: noted('down'), up: noted('up') });
      // As in an app, where each node is asked now and then whether it has restarted.
      await servers.trusted(1000);
      const locks = serviceWith(store, terms);
      await locks.withLock('warm up', () => undefined);
      const node = servers.clients[2]!;
      const connections = async () => Number(/total_connections_received:(\d+)/.exec(await node.info('stats'))![1]);
      await node.call('CLIENT', 'PAUSE', '60000', 'WRITE');
      try {
        const before = await connections();
        // Each of them gets twice the time of the one before.
        const isOften = async () => (await connections()) >= before + 4;
        while (!(await isOften())) expect(await locks.withLock(KEY, ({ isHeld }) => isHeld)).toBe(true);
        expect(log).toEqual(['down']);
      } finally {
        await node.client('UNPAUSE');
      }
      await until(() => log.length > 1);
      expect(log).toEqual(['down', 'up']);
    });

    it('two dead nodes change nothing, and each is in the log once', async () => {
      const down: string[] = [];
      const locks = await warmed({ lease: 1200 }, { down: (server) => down.push(server) });
      const before = await locks.lock('before');
      await servers.kill(1, 3);
      const heldLongEnough = performance.now() + 1600;
      while (performance.now() < heldLongEnough) expect(await locks.withLock(KEY, ({ isHeld }) => isHeld)).toBe(true);
      expect(before.isHeld).toBe(true);
      expect(await before.unlock()).toBe(true);
      await until(() => down.length >= 2);
      expect(down.sort()).toEqual([1, 3].map((at) => `127.0.0.1:${servers.all[at]!.port}`).sort());
      await servers.nothingLeft();
    });

    it('a node that was down is not flooded with releases of locks that it never had', async () => {
      const isDown = deferred();
      const locks = await warmed({}, { down: () => isDown.resolve() });
      await servers.kill(4);
      await locks.withLock(KEY, () => isDown.promise);
      for (let count = 0; count < 300; count++) await locks.withLock(KEY, () => undefined);
      // From then on nothing waits for a connection any more.
      await sleep(COMMAND_TIMEOUT_MS + 200);
      await servers.all[4]!.restart();
      await until(() => locks.withLock('again', async () => (await servers.clients[4]!.exists('lock:again')) === 1));
      const cancelled = /cmdstat_zrem:calls=(\d+)/.exec(await servers.clients[4]!.info('commandstats'));
      expect(Number(cancelled?.[1] ?? 0)).toBeLessThan(50);
    }, 15_000);

    it('three dead nodes are an outage, reported in time, and leave nothing on the others', async () => {
      const locks = await warmed();
      await servers.kill(0, 1, 2);
      const calls = [
        () => locks.lock(KEY),
        () => locks.tryLock('b'),
        () => locks.isLocked('c'),
        () => locks.inspect('d'),
        () => locks.forceUnlock('e'),
      ];
      await Promise.all(
        calls.map(async (call) => {
          let error: unknown;
          expect(await tookMs(() => call().catch((reason: unknown) => (error = reason)))).toBeLessThan(
            COMMAND_TIMEOUT_MS + 500,
          );
          expect(error).toBeInstanceOf(LockUnavailableError);
          expect((error as LockUnavailableError).detail).toMatch(
            /^3 of 5 nodes failed, and a lock needs 3 that agree\. Redis at 127/,
          );
          expect((error as LockUnavailableError).cause).toBeInstanceOf(AggregateError);
        }),
      );
      await servers.nothingLeft();
      await servers.reset();
      await until(() => locks.withLock(KEY, () => true).catch(() => false));
    });

    it('three nodes that hang are an outage too; what they grant when they continue is released', async () => {
      const locks = await warmed({ lease: '1m' });
      for (const at of [0, 1, 2]) servers.hang(at);
      expect(await tookMs(() => expect(locks.lock(KEY)).rejects.toBeInstanceOf(LockUnavailableError))).toBeLessThan(
        COMMAND_TIMEOUT_MS + 500,
      );
      for (const at of [0, 1, 2]) servers.goOn(at);
      await servers.nothingLeft();
    });

    it('a tie does not wait for nodes that hang', async () => {
      const locks = await warmed();
      for (const at of [0, 1]) await servers.clients[at]!.set(`lock:${KEY}`, 'theirs', 'PX', 60_000);
      servers.hang(3);
      servers.hang(4);
      // It looks like a collision, so the caller tries again for half a second.
      expect(await tookMs(async () => expect(await locks.tryLock(KEY)).toBeNull())).toBeLessThan(
        COMMAND_TIMEOUT_MS * 0.8,
      );
    });

    it('a grant that comes late is released when it arrives', async () => {
      const proxies = await Promise.all([3, 4].map((at) => startProxy(servers.all[at]!.port)));
      const locks = serviceOn([...servers.urls.slice(0, 3), ...proxies.map(({ url }) => url)], { lease: '1m' });
      await locks.withLock('warm up', () => onAllNodes());
      await servers.nothingLeft();
      for (const at of [0, 1, 2]) await servers.clients[at]!.set(`lock:${KEY}`, 'theirs', 'PX', 60_000);
      const replies = proxies.flatMap(({ wires }) => wires.map((wire) => wire.replies));
      for (const flow of replies) flow.hold();
      expect(await locks.tryLock(KEY)).toBeNull();
      await until(async () => (await servers.keys()).length === 5);
      for (const flow of replies) flow.release();
      await until(async () => (await servers.keys()).length === 3);
      await locks.close();
      await Promise.all(proxies.map((proxy) => proxy.stop()));
    });

    it('the release of a lock reaches also a node whose grant comes after it', async () => {
      const proxy = await startProxy(servers.all[4]!.port);
      const locks = serviceOn([...servers.urls.slice(0, 4), proxy.url], { lease: '1m' });
      await locks.withLock('warm up', () => onAllNodes());
      await servers.nothingLeft();
      const [commands] = proxy.wires;
      commands!.requests.hold();
      await locks.withLock(KEY, () => undefined);
      await until(async () => (await servers.keys()).length === 0);
      commands!.requests.release();
      await locks.close();
      expect(await servers.keys()).toEqual([]);
      await proxy.stop();
    });

    /** A quorum whose fifth node is behind a proxy, and what acquires a lock there when that node lacks the script. */
    async function withForgetfulNode() {
      const proxy = await startProxy(servers.all[4]!.port);
      // A machine that stalls for a second must not make a call late: its node would then miss the next lock.
      const store = trustingQuorum([...servers.urls.slice(0, 4), proxy.url], 30_000);
      const locks = serviceWith(store, { lease: '1m' });
      const other = lockService(redisStore({ connection: servers.urls[4]! }), { shutdownGrace: 0 });
      open.push(other);
      await other.withLock('warm up', () => undefined);
      await locks.withLock('warm up', () => onAllNodes());
      await servers.nothingLeft();
      const { replies } = proxy.wires[0]!;
      const lockUnknown = async () => {
        await servers.clients[4]!.script('FLUSH');
        replies.hold();
        const notKnown = replies.nextHeld();
        const lock = await locks.lock(KEY);
        await notKnown;
        // The script is there again before the release arrives.
        await other.withLock('other', () => undefined);
        return lock;
      };
      return { proxy, locks, replies, lockUnknown };
    }

    it('the release of a lock is not overtaken by the grant of a node that lacked the script', async () => {
      const { proxy, locks, replies, lockUnknown } = await withForgetfulNode();
      for (let round = 0; round < 5; round++) {
        const lock = await lockUnknown();
        await lock.unlock();
        await until(async () => (await servers.keys()).length === 0);
        replies.release();
        await locks.withLock('next', () => onAllNodes());
        await servers.nothingLeft();
      }
      await locks.close();
      await proxy.stop();
    });

    it('a release is repeated when its reply and that of the grant which came after it arrive together', async () => {
      const { proxy, locks, replies, lockUnknown } = await withForgetfulNode();
      const lock = await lockUnknown();
      const released = replies.nextHeld();
      await lock.unlock();
      await released;
      const granted = replies.nextHeld();
      replies.releaseNext();
      await granted;
      replies.release();
      await servers.nothingLeft();
      await locks.close();
      await proxy.stop();
    });

    it('a held lock is lost in time when a majority dies: its signal aborts before the lease ends', async () => {
      const locks = await warmed();
      const lock = await locks.lock(KEY, { lease: 900 });
      await until(() => lock.remaining() < 700);
      const ends: number[] = [];
      const watching = setInterval(() => ends.push(performance.now() + lock.remaining()), 5);
      const lost = aborted(lock.signal);
      await servers.kill(0, 1, 2);
      expect(await lost).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
      clearInterval(watching);
      expect(performance.now()).toBeLessThan(Math.max(...ends) + 300);
      for (const at of [3, 4]) expect(await servers.clients[at]!.exists(`lock:${KEY}`)).toBe(1);
    });

    it('a held lock is lost at the next renewal when a majority forgot it', async () => {
      const locks = await warmed();
      const lock = await locks.lock(KEY, { lease: 600 });
      await onAllNodes();
      await Promise.all(servers.clients.slice(0, 3).map((client) => client.flushall()));
      expect(await aborted(lock.signal)).toMatchObject({ reason: 'taken' });
    });

    it('a lock that too few nodes still know does not affect those that are renewed with it', async () => {
      const locks = await warmed({ lease: 1200 });
      const [sick, well] = [await locks.lock('sick'), await locks.lock('well')];
      await onAllNodes(2);
      await servers.kill(0, 1);
      await servers.clients[2]!.del('lock:sick');
      expect(await aborted(sick.signal)).toMatchObject({ reason: 'expired' });
      const longerThanALease = performance.now() + 1300;
      await until(() => performance.now() > longerThanALease);
      expect(well.isHeld).toBe(true);
    }, 15_000);
  });

  describe('fences', () => {
    it('fences grow from majority to majority, also when the counters of the nodes differ by seconds', async () => {
      const [here, there] = [await warmed({ lease: 300 }), await warmed({ lease: 300 })];
      const ahead = [40, 0, 10, 20, 30];
      await Promise.all(
        servers.clients.map((client, at) => client.set('{lock:}:fence', (Date.now() + ahead[at]! * 1000) * 1000)),
      );
      const fences: number[] = [];
      for (let turn = 0; turn < 30; turn++) {
        const absent = [turn % 5, (turn * 2 + 1) % 5].map((at) => servers.clients[at]!);
        await Promise.all(absent.map((client) => client.set(`lock:${KEY}`, 'theirs', 'PX', 60_000)));
        const lock = await (turn % 2 ? here : there).lock(KEY, { watchdog: false, wait: '5s' });
        fences.push(lock.fence);
        // Some are never given back: their lease ends.
        if (turn % 3) await lock.unlock();
        else await aborted(lock.signal);
        await Promise.all(absent.map((client) => client.del(`lock:${KEY}`)));
        await servers.nothingLeft();
      }
      expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
    });

    it('fences grow over hand-offs inside a process and from process to process', async () => {
      const services = [await warmed(), await warmed()];
      const fences: number[] = [];
      await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          services[index % 2]!.withLock(KEY, ({ fence }) => void fences.push(fence)),
        ),
      );
      expect(new Set(fences).size).toBe(40);
      expect(fences).toEqual([...fences].sort((a, b) => a - b));
    });
  });

  describe('callers that contend', () => {
    it('all contending callers get the lock, one at a time, however often they collide', async () => {
      const services = [await warmed(), await warmed(), await warmed()];
      let inside = 0;
      let runs = 0;
      const work = () => {
        expect(++inside).toBe(1);
        runs++;
        return Promise.resolve().then(() => void inside--);
      };
      for (let round = 0; round < 6; round++) await Promise.all(services.map((service) => service.withLock(KEY, work)));
      expect(runs).toBe(18);
      await servers.nothingLeft();
    });

    it('all contending callers get a reply when none of them waits', async () => {
      const services = [await warmed(), await warmed(), await warmed()];
      for (let round = 0; round < 30; round++) {
        const locks = await Promise.all(services.map((service) => service.tryLock(KEY)));
        expect(locks.filter((lock) => lock !== null).length).toBeLessThanOrEqual(1);
        await Promise.all(locks.map(async (lock) => lock?.unlock()));
        await servers.nothingLeft();
      }
    });

    it.each([
      ['many callers with short work', 12, 1],
      ['one caller with long work', 1, 150],
    ])('callers do not starve beside a process that never lets go: %s', async (_what, callers, holdMs) => {
      const [here, there] = [await warmed(), await warmed()];
      const done = { here: 0, there: 0 };
      let stop = false;
      const call = async (who: 'here' | 'there') => {
        while (!stop) {
          await (who === 'here' ? here : there).withLock(KEY, () => sleep(holdMs));
          done[who]++;
        }
      };
      const greedy = Array.from({ length: callers }, () => call('here'));
      await until(() => done.here > 0);
      const modest = call('there');
      await until(() => done.there >= 4 && done.here >= 4, 10_000);
      stop = true;
      await Promise.all([...greedy, modest]);
    });

    describe('beside a process that never lets go, and does not hear that they wait', () => {
      const TURNS = 8;
      const LEASE_MS = 3000;
      let proxies: TcpProxy[];
      let unsubscribed: number;
      let subscribed: number;
      let sections: number;
      let stop: () => Promise<void>;
      let modest: ClosableLockService;

      beforeEach(async () => {
        [unsubscribed, subscribed, sections] = [0, 0, 0];
        proxies = await Promise.all(servers.all.map(({ port }) => startProxy(port)));
        const log = { unsubscribed: () => void unsubscribed++, subscribed: () => void subscribed++ };
        const connection = proxies.map(({ url }) => url);
        await servers.trusted(LEASE_MS);
        const store = redisStore({ connection, lease: LEASE_MS }, log);
        const greedy = await warmUp(serviceWith(store, { lease: LEASE_MS }));
        modest = await warmed();
        let isStopped = false;
        const work = () => {
          sections++;
          return sleep(60);
        };
        const loop = async () => {
          while (!isStopped) await greedy.withLock(KEY, work);
        };
        const looping = loop();
        stop = () => {
          isStopped = true;
          return looping;
        };
      }, 20_000);

      afterEach(async () => {
        await stop();
        await Promise.all(open.splice(0).map((service) => service.close()));
        await Promise.all(proxies.map((proxy) => proxy.stop()));
      });

      /** How often that process has the lock until the other one, which asks while it is inside, got it some times. */
      async function sectionsForTurns(): Promise<number> {
        const before = sections;
        for (let turn = 0; turn < TURNS; turn++) {
          const seen = sections;
          await until(() => sections > seen);
          await modest.withLock(KEY, () => undefined);
        }
        return sections - before;
      }

      it('callers get the lock by turns while all subscriptions of that process are refused', async () => {
        for (const proxy of proxies) proxy.subscribers.refuse();
        await until(() => unsubscribed >= proxies.length);
        expect(await sectionsForTurns()).toBeLessThanOrEqual(2 * TURNS);
      }, 30_000);

      it('callers get the lock by turns after the servers have dropped all subscriptions of that process', async () => {
        for (const proxy of proxies) proxy.subscribers.loseServer();
        // It notices by itself.
        await until(() => subscribed >= proxies.length);
        expect(await sectionsForTurns()).toBeLessThanOrEqual(2 * TURNS);
      }, 30_000);
    });
  });

  describe('a shutdown', () => {
    it('a shutdown releases held locks on all nodes, and grants no new ones', async () => {
      const locks = await warmed();
      const held = await Promise.all(['a', 'b', 'c'].map((key) => locks.lock(key)));
      const waiting = expect(locks.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching(/shutting down/));
      await until(async () => (await servers.keys()).length === 15);
      await locks.close();
      await waiting;
      expect(held.map(({ isHeld }) => isHeld)).toEqual([false, false, false]);
      expect(await servers.keys()).toEqual([]);
      await until(
        async () =>
          !String(await Promise.all(servers.clients.map((client) => client.client('LIST')))).includes(
            'name=nest-redis-lock',
          ),
      );
    });

    it('a shutdown ends also while nodes are down', async () => {
      const locks = await warmed();
      await locks.lock(KEY);
      await servers.kill(0, 1, 2);
      expect(await tookMs(() => locks.close())).toBeLessThan(3 * COMMAND_TIMEOUT_MS);
    });
  });
});
