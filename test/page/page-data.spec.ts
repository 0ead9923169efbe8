import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockTimeoutError, type LockService } from 'nest-redis-lock';
import { LockPage } from '../../lib/page/lock-page.js';
import type { PageSnapshot } from '../../lib/page/page-snapshot.js';
import type { View } from '../../lib/page/view/live-snapshots.js';
import { deferred, until } from '../support/deferred.js';
import { TestChild } from '../support/processes/child-process.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

const ALL: View = { filter: '', key: undefined };

describe('What the page shows', () => {
  let redis: RedisServer;
  let client: Redis;
  withRedis((one) => ([redis, client] = [one.server, one.redis]));
  const closes: (() => Promise<unknown>)[] = [];

  afterEach(() => Promise.all(closes.splice(0).map((close) => close())));

  /** Starts what a process of the app has. */
  function process(options = {}): { readonly locks: ClosableLockService; readonly page: LockPage } {
    const locks = lockService(redisStore({ connection: redis.url, ...options }), { shutdownGrace: 0, ...options });
    locks.onApplicationBootstrap();
    const page = new LockPage(locks, false, { everyMs: 100 });
    closes.push(async () => {
      page.onModuleDestroy();
      await locks.close();
    });
    return { locks, page };
  }

  /** Resolves with the first snapshot that fits. */
  async function snapshotThat(
    { page }: { readonly page: LockPage },
    fits: (snapshot: PageSnapshot) => boolean,
    view = ALL,
  ): Promise<PageSnapshot> {
    const found = deferred<PageSnapshot>();
    let latest = '';
    const patience = setTimeout(() => found.reject(new Error(`No snapshot fits; the latest is ${latest}`)), 10_000);
    const stop = page.live.follow(view, {
      next: (json) => {
        const snapshot = JSON.parse((latest = json)) as PageSnapshot;
        if (fits(snapshot)) found.resolve(snapshot);
      },
      end: () => found.reject(new Error('The page has ended.')),
    });
    return found.promise.finally(() => {
      clearTimeout(patience);
      stop();
    });
  }

  const idOf = (locks: LockService) => locks.processes.own;

  it('it shows who holds and who waits in all processes, and finds them by any of their texts', async () => {
    const [here, there] = [process(), process()];
    const held = await there.locks.lock('account:42', { label: 'Transfer', lease: '20s' });
    const waiting = there.locks.withLock('other', () => here.locks.lock('account:42', { label: 'Report' }));
    const {
      held: rows,
      waiting: waiters,
      totals,
      processes,
    } = await snapshotThat(here, ({ totals }) => totals.waiting > 0);
    expect(rows.total).toBe(2);
    expect(rows.items.find(({ key }) => key === 'account:42')).toMatchObject({
      ...{ keyLength: 10, label: 'Transfer', process: idOf(there.locks), fence: held.fence, mode: 'exclusive' },
      ...{ waiters: 1, isOverdue: false, host: expect.any(String), pid: globalThis.process.pid },
    });
    expect(rows.items[0]!.leaseLeftMs).toBeGreaterThan(15_000);
    expect(waiters.items).toMatchObject([
      { key: 'account:42', label: 'Report', process: idOf(here.locks), place: null },
    ]);
    expect(totals).toMatchObject({ held: 2, waiting: 1, processes: 2 });
    expect(processes.map(({ id, isThis, held, waiting }) => ({ id, isThis, held, waiting }))).toEqual(
      expect.arrayContaining([
        { id: idOf(here.locks), isThis: true, held: 0, waiting: 1 },
        { id: idOf(there.locks), isThis: false, held: 2, waiting: 0 },
      ]),
    );
    for (const [filter, keys] of [
      ['transf', ['account:42']],
      ['COUNT:4'.toLowerCase(), ['account:42']],
      ['nowhere', []],
    ] as const) {
      const { held } = await snapshotThat(here, (snapshot) => snapshot.filter === filter, { ...ALL, filter });
      expect(held.items.map(({ key }) => key)).toEqual(keys);
    }
    await held.unlock();
    await (await waiting).unlock();
  });

  it('the view of a key shows its holder, its waiters in the order of Redis, and what happened to it everywhere', async () => {
    const [here, there] = [process(), process()];
    const held = await here.locks.lock('account:42', { label: 'first' });
    const waits: Promise<unknown>[] = [];
    const calls: [LockService, string][] = [
      [there.locks, 'second'],
      [here.locks, 'third'],
    ];
    for (const [at, [locks, label]] of calls.entries()) {
      waits.push(locks.withLock('account:42', () => undefined, { label, fair: true }));
      await until(async () => (await here.locks.storedKey('account:42'))!.waiters.length === at + 1);
    }
    const view: View = { filter: 'nowhere', key: 'account:42' };
    const before = await snapshotThat(there, ({ key }) => key?.waiters.total === 2, view);
    expect(before.key).toMatchObject({ key: 'account:42', isHeld: true, mode: 'exclusive', permits: null });
    expect(before.key!.holders.items).toMatchObject([{ label: 'first', fence: held.fence, waiters: 2 }]);
    expect(before.key!.waiters.items).toMatchObject([
      { label: 'second', place: 1 },
      { label: 'third', place: 2 },
    ]);
    await held.unlock();
    await Promise.all(waits);
    const { key } = await snapshotThat(there, ({ key }) => key!.history.length >= 8, view);
    expect(key).toMatchObject({ isHeld: false, holders: { total: 0 }, waiters: { total: 0 } });
    expect(key!.history.map(({ type, label }) => `${label} ${type}`).sort()).toEqual(
      ['first acquired', 'first released', 'second queued', 'second acquired', 'second released']
        .concat(['third queued', 'third acquired', 'third released'])
        .sort(),
    );
  });

  it('of many locks it shows those that are held longest, whichever process has them, and how many there are', async () => {
    const [here, there] = [process(), process()];
    const keys = (name: string) => Array.from({ length: 150 }, (_, at) => `${name}:${at}`);
    for (const [locks, name] of [[there.locks, 'first'] as const, [here.locks, 'then'] as const]) {
      await Promise.all(keys(name).map((key) => locks.lock(key)));
      const acquired = Date.now();
      await until(() => Date.now() > acquired);
    }
    const { held } = await snapshotThat(here, ({ totals }) => totals.held === 300);
    expect([held.total, held.items.length]).toEqual([300, 200]);
    expect(held.items.slice(0, 150).map(({ key }) => key)).toEqual(keys('first'));
    expect(held.items.slice(150).every(({ key }) => key.startsWith('then'))).toBe(true);
  });

  it('two processes that wait for the keys of each other are a marked cycle', async () => {
    const [here, there] = [process(), process()];
    const bothHold = [deferred(), deferred()];
    const call = async ({ locks }: typeof here, [own, other]: [string, string], at: 0 | 1) =>
      locks.withLock(own, async () => {
        bothHold[at]!.resolve();
        await bothHold[1 - at]!.promise;
        await locks.withLock(other, () => undefined, { wait: '1s' });
      });
    const calls = Promise.allSettled([call(here, ['1', '2'], 0), call(there, ['2', '1'], 1)]);
    const { waitGraph } = await snapshotThat(here, (snapshot) => snapshot.waitGraph.calls.total === 2);
    expect(waitGraph.calls.items).toMatchObject([{ holds: [expect.any(String)] }, { holds: [expect.any(String)] }]);
    expect(waitGraph.cycles).toEqual([expect.arrayContaining(waitGraph.calls.items.map(({ id }) => id))]);
    expect(waitGraph.edges).toEqual([
      { from: expect.any(String), to: expect.any(String), key: expect.stringMatching(/[12]/), isInCycle: true },
      { from: expect.any(String), to: expect.any(String), key: expect.stringMatching(/[12]/), isInCycle: true },
    ]);
    const outcomes = await calls;
    expect(outcomes.some((one) => one.status === 'rejected' && one.reason instanceof LockTimeoutError)).toBe(true);
  });

  it('it shows times by label over all processes, the hottest keys, and lost locks with who took them', async () => {
    const [here, there] = [process(), process()];
    for (const { locks } of [here, there]) {
      await locks.withLock('busy', () => undefined, { label: 'Both' });
      const lost = await locks.lock(`lost:${idOf(locks)}`, { label: 'Gone' });
      await here.locks.forceUnlock(lost.key, { by: 'ops', reason: 'stuck' });
      await until(() => Promise.resolve(lost.signal.aborted));
    }
    const snapshot = await snapshotThat(here, ({ labels, losses }) => losses.total === 2 && labels.total === 2);
    const both = snapshot.labels.items.find(({ label }) => label === 'Both')!;
    expect(both).toMatchObject({ acquired: 2, timeouts: 0, lost: 0, hold: { count: 2 } });
    expect(both.wait.p50).toBeGreaterThan(0);
    expect(both.wait.series.p99).toHaveLength(snapshot.slots.count);
    expect(both.wait.series.p99.slice(-2).some((one) => one !== null)).toBe(true);
    expect(snapshot.hotKeys.find(({ key }) => key === 'busy')).toMatchObject({ acquired: 2, label: 'Both' });
    expect(snapshot.losses).toMatchObject({ total: 2, byReason: { forced: 2 } });
    expect(snapshot.losses.items[0]).toMatchObject({ label: 'Gone', reason: 'forced', by: 'ops', why: 'stuck' });
  });

  it('keys with markup or controls, and the longest ones, are shown and looked up as they are', async () => {
    const { locks, page } = process();
    const keys = ['x'.repeat(1_024), '<img src=x onerror=alert(1)>', 'a\u202eb\u0007 "\'</script>'];
    for (const key of keys) await locks.lock(key);
    const { held } = await snapshotThat({ page }, ({ totals }) => totals.held === 3);
    expect(held.items.map(({ key }) => key)).toEqual(keys);
    for (const key of keys) {
      const view = await snapshotThat({ page }, (snapshot) => snapshot.key !== null, { filter: '', key });
      expect(view.key).toMatchObject({ key, isHeld: true, holders: { total: 1 } });
    }
  });

  it('while Redis is stopped, the page goes on, says so, and shows what this process knows; then it is up again', async () => {
    const { locks, page } = process({ commandTimeout: '200ms', lease: '60s' });
    await locks.lock('account:42');
    await snapshotThat({ page }, ({ server, totals }) => server.isUp && totals.held === 1);
    await redis.stop();
    const down = await snapshotThat({ page }, ({ server }) => !server.isUp);
    expect(down.server.errors[0]).toMatch(/Redis/);
    expect(down.server.downForMs).toBeGreaterThanOrEqual(0);
    expect(down.server.unreached.length).toBeGreaterThan(0);
    expect(down.held.items).toMatchObject([{ key: 'account:42' }]);
    await redis.restart();
    const up = await snapshotThat({ page }, ({ server }) => server.isUp);
    expect(up.server).toMatchObject({ errors: [], downForMs: null, up: 1, of: 1 });
  });

  it('a process that has ended is gone, and its times still count', async () => {
    const [here, there] = [process(), process()];
    await there.locks.withLock('a', () => undefined, { label: 'Once' });
    const { processes } = await snapshotThat(
      here,
      ({ totals, labels }) => totals.processes === 2 && labels.total === 1,
    );
    expect(processes.map(({ silentMs }) => silentMs)).toEqual([0, 0]);
    expect(processes.find(({ isThis }) => !isThis)!.acquiredPerSecond).toBeGreaterThan(0);
    await there.locks.close();
    const { labels } = await snapshotThat(here, ({ totals }) => totals.processes === 1);
    expect(labels.items).toMatchObject([{ label: 'Once', acquired: 1 }]);
  });

  it('a client that forges reports makes no sum anything else than a number, and fills no memory', async () => {
    const here = process();
    const forger = new Redis(redis.url);
    const ears = new Redis(redis.url);
    closes.push(() => Promise.resolve([forger, ears].forEach((one) => one.disconnect())));
    let channels: string[] = [];
    await until(async () => (channels = (await forger.pubsub('CHANNELS', '*:wake:*')) as string[]).length === 1);
    const mine = channels[0]!.replace(here.locks.processes.own, 'evil:1:x');
    const now = Math.floor(Date.now() / 10_000);
    let asked = 0;
    ears.on('message', (_channel: string, message: string) => {
      const [, id, json] = /^ask (\S+) (.*)$/s.exec(message) ?? [];
      if (!id) return;
      asked++;
      const counts = '[1,1e308,1,1e308]';
      const label = (name: string, slot: number) =>
        `["${name}",[${slot},1e308,1e308,1,1,1e308,${counts},1e308,${counts}]]`;
      const labels = Array.from({ length: 500 }, (_, at) => label(`${asked} ${at}`, now + 1e6 + asked));
      labels.push(...Array.from({ length: 500 }, (_, at) => label(`now ${asked} ${at}`, now)));
      const hot = '{"key":"k","acquired":1e308,"timeouts":1e308,"waitedMs":1e308}';
      const keys = JSON.stringify(['__proto__', 'x'.repeat(2_000)]);
      const lists = `{"held":{"total":1e308,"items":[{"id":1,"keys":${keys},"ms":1e308}]}}`;
      const report =
        `{"held":1e308,"waiting":"many","byText":[${lists}],"queues":[["__proto__",1e308]],"nested":[{"holds":[1e308]}],` +
        `"lostByReason":{"__proto__":1e308,"constructor":1,"toString":2},"byFilter":[{"hotKeys":[${hot},${hot}]}],` +
        `"times":{"from":0,"labels":[${labels.join()}]}}`;
      const { replyTo } = JSON.parse(json!) as { replyTo: string };
      void forger.publish(replyTo, `answer ${id} ${report}`);
    });
    await ears.subscribe(mine);
    await here.locks.withLock('honest', () => undefined, { label: 'Honest' });
    const shown = await snapshotThat(
      here,
      ({ totals, labels }) => totals.processes === 2 && asked > 8 && labels.items.some((one) => one.label === 'Honest'),
    );
    const asSent = JSON.stringify(shown);
    expect(shown.losses.byReason).toEqual(JSON.parse('{"__proto__":0,"constructor":1,"toString":2}'));
    expect(shown.hotKeys.every(({ waitedMs }) => Number.isFinite(waitedMs))).toBe(true);
    expect(shown.labels.items.every(({ wait, hold }) => wait.count !== null && hold.count !== null)).toBe(true);
    expect(shown.labels.total).toBeLessThan(150);
    expect(shown.held.items.map(({ key }) => key)).toEqual(['__proto__', 'x'.repeat(1_024)]);
    expect(asSent.length).toBeLessThan(300_000);
  });

  it('a process without the page is shown with its locks; when it stops, the page says so until its lease is over', async () => {
    const child = new TestChild('hold.mjs', redis.url, 'account:42', 4_000, '{"label":"nightly"}');
    closes.push(() => child.kill());
    await child.message();
    const here = process();
    const next = here.locks.lock('account:42', { label: 'payout' });
    const { pid } = child.process;
    const before = await snapshotThat(here, ({ totals }) => totals.held === 1 && totals.waiting === 1);
    const row = { key: 'account:42', label: 'nightly', pid, waiters: 1 };
    expect(before.held).toMatchObject({ total: 1, items: [{ ...row, isSilent: false }] });
    const one = { pid, hasPage: false, isSilent: false, held: 1, waiting: 0, uptimeMs: null, leaseMargin: null };
    expect(before.processes.find(({ isThis }) => !isThis)).toMatchObject(one);
    expect(before.server.unreached).toEqual([]);

    await child.stop();
    const stopped = await snapshotThat(here, ({ held }) => held.items.some(({ isSilent }) => isSilent));
    expect(stopped.held).toMatchObject({ total: 1, items: [row] });
    expect(stopped.held.items[0]!.leaseLeftMs).toBeLessThan(2_500);
    expect(stopped.processes.find(({ isThis }) => !isThis)).toMatchObject({ pid, isSilent: true, held: 1 });
    expect(stopped.server.unreached).toEqual([
      expect.stringMatching(/:\d+ did not answer in time: it is stalled, stopped/),
    ]);

    await (await next).unlock();
    const after = await snapshotThat(here, ({ totals }) => totals.waiting === 0 && totals.held === 0);
    expect(after).toMatchObject({ held: { total: 0 }, processes: { length: 2 } });
  });

  it('a process that was stopped before anybody looked is listed, and Redis tells who holds what others wait for', async () => {
    const child = new TestChild('hold.mjs', redis.url, 'account:42', 30_000);
    closes.push(() => child.kill());
    await child.message();
    const here = process();
    await until(async () => (await here.locks.processes.find()).sources.length === 2);
    await child.stop();
    await client.set('lock:tool', 'another tool', 'PX', 60_000);
    const abort = new AbortController();
    closes.unshift(() => Promise.resolve(abort.abort()));
    for (const key of ['account:42', 'tool'])
      void here.locks.lock(key, { signal: abort.signal }).catch(() => undefined);
    const { held, processes } = await snapshotThat(
      here,
      ({ totals }) => totals.waiting === 2 && totals.held === 2 && totals.processes === 2,
    );
    const unknown = { label: null, fence: null, heldMs: null, traceId: null, waiters: 1 };
    expect(held.total).toBe(2);
    expect(held.items.find(({ key }) => key === 'tool')).toMatchObject({ ...unknown, process: null, isSilent: false });
    expect(held.items.find(({ key }) => key === 'account:42')).toMatchObject({
      ...{ ...unknown, pid: child.process.pid, isSilent: true, leaseLeftMs: expect.any(Number) },
    });
    expect(processes.find(({ isThis }) => !isThis)).toMatchObject({
      pid: child.process.pid,
      held: null,
      waiting: null,
    });
  });

  it('of a key that several share, it shows also those whose process is dead, and whose work is done', async () => {
    const permits = { permits: 3, lease: 30_000 };
    const child = new TestChild('hold.mjs', redis.url, 'pool', 30_000, JSON.stringify({ permits: 3 }), 1);
    closes.push(() => child.kill());
    await child.message();
    const here = process();
    await here.locks.lock('pool', permits);
    await (await here.locks.lock('pool', { ...permits, atLeast: '30s' })).unlock();
    await child.kill();
    const abort = new AbortController();
    closes.unshift(() => Promise.resolve(abort.abort()));
    void here.locks.lock('pool', { ...permits, signal: abort.signal }).catch(() => undefined);
    const { held } = await snapshotThat(here, ({ totals }) => totals.waiting === 1 && totals.held === 3);
    expect(held.items.map(({ key, isKept }) => [key, isKept])).toEqual(
      expect.arrayContaining([
        ['pool', false],
        ['pool', true],
        ['pool', false],
      ]),
    );
  });

  it('nobody is asked anything while nobody looks, and all are asked once however many look', async () => {
    const { locks, page } = process();
    const find = jest.spyOn(locks.processes, 'find');
    const stops = Array.from({ length: 20 }, () =>
      page.live.follow(ALL, { next: () => undefined, end: () => undefined }),
    );
    await until(() => Promise.resolve(find.mock.calls.length === 3));
    for (const stop of stops) stop();
    const looks = await Promise.all([page.live.poll(ALL), page.live.poll(ALL)]);
    expect(looks[0]).toBe(looks[1]);
  });
});
