import { afterEach, describe, expect, it } from '@jest/globals';
import type { Lock, LockOptions } from 'nest-redis-lock';
import { FIRST_LEASE_MS } from '../../lib/store/lock-store.js';
import type { TestChild } from '../support/processes/child-process.js';
import { until } from '../support/deferred.js';
import { figures } from '../support/lab.js';
import { lockService, redisStore } from '../support/stores/lock-services.js';
import { ofClients, RedisMonitor } from '../support/redis/redis-monitor.js';
import { Stage } from '../support/processes/stage.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';

const LEASE_MS = 30_000;

/**
 * How long nobody is inside at most, when a waiter is handed the lock that stands still: until that ends, and the next
 * one asks by itself.
 */
const LONGEST_GAP_MS = FIRST_LEASE_MS + 1250 + 500;

const OPTIONS: readonly (readonly [string, LockOptions])[] = [
  ['exclusive', {}],
  ['fair', { fair: true }],
  ['with a fixed lease', { watchdog: false }],
  ['that reads', { mode: 'read' }],
  ['of a permit', { permits: 1 }],
];

describe('A waiter that stands still, though its connections do not', () => {
  const stage = Stage.forEach();
  const clean: (() => unknown)[] = [];

  afterEach(async () => {
    for (const end of clean.splice(0)) await end();
  });

  interface Line {
    readonly key: string;
    readonly lock: Lock;
    readonly next: Promise<Lock>;
  }

  /** A holder, one who waits for it and stands still from then on, and one behind who does not. */
  async function line(key: string, options: LockOptions, silence: () => Promise<unknown>): Promise<Line> {
    const permits = options.permits === undefined ? {} : { permits: options.permits };
    const lock = await stage.here.lock(key, { lease: '30s', ...permits });
    await silence();
    const next = stage.here.lock(key, { wait: '1m', fair: true, ...permits });
    await stage.queued(key, 2);
    return { key, lock, next };
  }

  /** How long after the release the next live waiter gets in. */
  async function gapIn({ lock, next }: Line): Promise<number> {
    await lock.unlock();
    const freedAt = performance.now();
    const mine = await next;
    const gapMs = performance.now() - freedAt;
    await mine.unlock();
    return gapMs;
  }

  it('a stopped waiter keeps the next one out for some seconds only, and gets its turn when it goes on', async () => {
    const lines: Line[] = [];
    const stopped: TestChild[] = [];
    for (const [kind, options] of OPTIONS) {
      const silence = async () => {
        const child = await stage.waiter(kind, 1, { wait: '1m', ...options, lease: LEASE_MS });
        stopped.push(child);
        await child.stop();
      };
      lines.push(await line(kind, options, silence));
    }
    const gaps = await Promise.all(lines.map(async (line) => ({ kind: line.key, gapMs: await gapIn(line) })));
    figures(
      'A waiter is stopped (SIGSTOP) when its turn comes; lease 30 s',
      'the next waiter enters within 5 s and one safety check',
      {
        waiters: gaps.length,
        'longest gap ms': Math.max(...gaps.map(({ gapMs }) => gapMs)),
      },
    );
    expect(gaps.filter(({ gapMs }) => gapMs > LONGEST_GAP_MS)).toEqual([]);
    for (const child of stopped) {
      const held = child.message<{ fence: number }>();
      child.goOn();
      expect(await held).toHaveProperty('fence');
    }
  }, 120_000);

  it('a waiter whose host is lost without a word keeps the next one out for no longer', async () => {
    const ours = await line('account:1', {}, async () => {
      const proxy = await startProxy(stage.server.port);
      const there = lockService(redisStore({ connection: proxy.url }), { shutdownGrace: 0 });
      clean.push(async () => {
        await there.close();
        await waiting;
        await proxy.stop();
      });
      const waiting = there.lock('account:1', { wait: '1m', lease: LEASE_MS }).catch(() => undefined);
      await stage.queued('account:1', 1);
      proxy.dropRequests();
      proxy.dropReplies();
    });
    const gapMs = await gapIn(ours);
    figures(
      'The host of a waiter is lost without a FIN when it is its turn; lease 30 s',
      'the next one gets in within 5 s and the safety check',
      { 'gap ms': gapMs },
    );
    expect(gapMs).toBeLessThan(LONGEST_GAP_MS);
  }, 60_000);

  it('a stopped waiter keeps what it has of several keys for no longer, while it waits for the rest', async () => {
    const b = await stage.here.lock('b');
    const child = await stage.waiter('["a","b"]', 0, { lease: LEASE_MS, wait: '1m' });
    await stage.queued('b', 1);
    await child.stop();
    const stoppedAt = performance.now();
    const a = await stage.here.lock('a', { wait: '20s' });
    expect(performance.now() - stoppedAt).toBeLessThan(LONGEST_GAP_MS);
    await Promise.all([a.unlock(), b.unlock()]);
    child.goOn();
    expect(await child.message<{ fence: number }>()).toHaveProperty('fence');
  }, 60_000);

  it('a waiter has its lock lengthened as soon as it is known to go on, for as long as it needs it', async () => {
    const lock = await stage.here.lock('account:1');
    const child = await stage.waiter('account:1', 1, { lease: LEASE_MS });
    await lock.unlock();
    const { fence } = await child.message<{ fence: number }>();
    const given = await stage.redis.pttl('lock:account:1');
    expect(given).toBeLessThanOrEqual(FIRST_LEASE_MS);
    await until(async () => (await stage.redis.pttl('lock:account:1')) > FIRST_LEASE_MS);
    expect((await stage.here.inspect('account:1'))?.holders[0]?.fence).toBe(fence);
    child.send('stop');
    expect(await child.exit()).toBe(0);
  }, 30_000);

  it.each<[string, LockOptions, string[]]>([
    ['costs a short section nothing: what gives it the lock and what frees it is all', {}, ['release', 'release']],
    [
      'is asked for once more when nobody would renew it, and that is no reason to doubt the connection',
      { watchdog: false },
      ['release', 'queue', 'release'],
    ],
  ])('a first short grant %s', async (_what, options, expected) => {
    const lock = await stage.here.lock('account:1');
    const waiting = stage.here.withLock('account:1', () => undefined, { fair: true, ...options });
    await stage.queued('account:1', 1);
    const monitor = await RedisMonitor.start(stage.server.port);
    clean.push(() => monitor.stop());
    await lock.unlock();
    await waiting;
    const verbs = ofClients(await monitor.commands()).map(
      (args) => args.find((arg) => /^(release|queue)/.test(arg)) ?? args[0],
    );
    // On a busy machine a safety check may come before the release.
    expect(verbs.slice(verbs.indexOf('release'))).toEqual(expected);
  });
});
