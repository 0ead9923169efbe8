import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Lock } from 'nest-redis-lock';
import { Command } from '../support/processes/command.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

const KEY = 'account:42';

describe('nest-redis-lock inspect and unlock', () => {
  let server: RedisServer;
  let redis: Redis;
  let locks: ClosableLockService;
  let lock: Lock;

  withRedis((one) => ({ server, redis } = one));

  beforeEach(async () => {
    locks = lockService(redisStore({ connection: server.url }), { shutdownGrace: 0 });
    lock = await locks.lock(KEY, { label: 'transfer' });
  });
  afterEach(() => locks.close());

  async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const command = new Command(server.url, args);
    const code = await command.exit;
    return { code, out: command.out, err: command.err };
  }

  it('inspect shows the holder and the waiters, in a table and as JSON', async () => {
    const waits = new AbortController();
    const waiting = locks.lock(KEY, { label: 'book', fair: true, signal: waits.signal }).catch(() => undefined);
    const [shown, json] = await Promise.all([run('inspect', KEY), run('inspect', KEY, '--json')]);
    expect(shown).toMatchObject({ code: 0, err: '' });
    const [process_, label, held, left, fence, token] = shown.out.split('\n')[4]!.trim().split(/ {2,}/);
    expect([process_, label, fence, token]).toEqual([
      `${hostname()}:${process.pid}`,
      'transfer',
      String(lock.fence),
      lock.token,
    ]);
    expect([held, left]).toEqual([expect.stringMatching(/^\d+\.\d s$/), expect.stringMatching(/^\d+ s$/)]);
    expect(shown.out).toMatch(/Waiting, the first one next\n.*\n {2}\S+ +book +exclusive/);
    expect(JSON.parse(json.out)).toMatchObject({
      key: KEY,
      holder: { fence: lock.fence },
      waiters: [{ label: 'book' }],
    });
    waits.abort();
    await waiting;
  });

  it('inspect says that nobody waits', async () => {
    expect(await run('inspect', KEY)).toMatchObject({ code: 0, out: expect.stringMatching(/\n\nNobody waits\.\n$/) });
  });

  it('inspect says that a key is free, with 1', async () => {
    await lock.unlock();
    expect(await run('inspect', KEY)).toEqual({ code: 1, out: 'account:42 is free.\n', err: '' });
    expect(await run('inspect', KEY, '--json')).toEqual({ code: 1, out: 'null\n', err: '' });
  });

  it('inspect shows what another tool has stored so that nothing in it reaches the terminal', async () => {
    await redis.set('lock:theirs', 'a\x1b[2Jb\x9bc', 'PX', 10_000);
    for (const more of [[], ['--json']]) {
      const { out } = await run('inspect', 'theirs', ...more);
      expect(out).toContain('a\\u001b[2Jb\\u009bc');
      for (const control of ['\x1b', '\x9b']) expect(out).not.toContain(control);
    }
    await redis.set('lock:theirs', 'without an end');
    expect((await run('inspect', 'theirs')).out).toContain('no end');
  });

  it('unlock releases the lock of a token, and tells its holder why', async () => {
    const { signal } = lock;
    const unlocked = await run('unlock', KEY, '--token', lock.token, '--reason', 'stuck', '--by', 'ops', '--yes');
    expect(unlocked).toEqual({ code: 0, out: 'Released account:42.\n', err: '' });
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', forced: { by: 'ops', reason: 'stuck' } });
  });

  it('unlock --force releases the lock of whoever holds it', async () => {
    const { signal } = lock;
    expect(await run('unlock', KEY, '--force', '--reason', 'stuck', '--yes')).toMatchObject({ code: 0 });
    expect(signal.reason).toMatchObject({ forced: { by: expect.stringContaining(`@${hostname()}`), reason: 'stuck' } });
    expect(await locks.isLocked(KEY)).toBe(false);
  });

  it('unlock releases nothing for another token, nor when the key is free', async () => {
    expect(await run('unlock', KEY, '--token', 'x', '--yes')).toMatchObject({
      code: 1,
      out: expect.stringMatching(/not held by that token/),
    });
    expect(lock.isHeld).toBe(true);
    await lock.unlock();
    expect(await run('unlock', KEY, '--token', 'x', '--yes')).toMatchObject({
      code: 1,
      out: expect.stringMatching(/is free/),
    });
  });

  it('unlock refuses without a terminal, a reason or a choice', async () => {
    const all = await Promise.all([
      run('unlock', KEY, '--token', lock.token),
      run('unlock', KEY, '--force', '--yes'),
      run('unlock', KEY, '--yes'),
      run('unlock', KEY, '--token', 'x', '--force', '--reason', 'y', '--yes'),
      run('unlock', KEY, '--force', '--reason', ' ', '--yes'),
    ]);
    expect(all.map(({ code }) => code)).toEqual([64, 64, 64, 64, 64]);
    expect(all[0].err).toMatch(/There is no terminal to ask on\. Give --yes/);
    expect(all[1].err).toMatch(/Say why: --reason/);
    expect(all[2].err).toMatch(/--token.*or --force/);
    expect(all[4].err).toMatch(/Say why: --reason/);
    expect(lock.isHeld).toBe(true);
  });
});
