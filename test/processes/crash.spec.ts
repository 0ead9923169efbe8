import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { TestChild } from '../support/processes/child-process.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';

const LEASE_MS = 1000;

describe('Crash and shutdown', () => {
  let server: RedisServer;
  let locks: ClosableLockService;

  withRedis((one) => ({ server } = one));
  beforeEach(() => void (locks = lockService(redisStore({ connection: server.url }))));
  afterEach(() => locks.close());

  it('a process that is killed leaves its lock to the next one within lease + 200 ms', async () => {
    const holder = new TestChild('hold.mjs', server.url, 'account:1', LEASE_MS);
    const { fence } = await holder.message<{ fence: number }>();
    const next = locks.lock('account:1');
    await holder.kill('SIGKILL');
    const killedAt = performance.now();
    const lock = await next;
    expect(performance.now() - killedAt).toBeLessThan(LEASE_MS + 200);
    expect(lock.fence).toBeGreaterThan(fence);
    await lock.unlock();
  }, 20_000);

  it('a process keeps its lock for as long as it lives, however short the lease', async () => {
    const holder = new TestChild('hold.mjs', server.url, 'account:2', 300);
    await holder.message();
    expect(await locks.tryLock('account:2', { wait: 1500 })).toBeNull();
    holder.send('stop');
    expect(await holder.exit()).toBe(0);
    await expect(locks.withLock('account:2', () => 'mine', { wait: 0 })).resolves.toBe('mine');
  }, 20_000);

  it('a process that gets SIGTERM refuses new locks, lets its work end, frees its locks and exits', async () => {
    const app = new TestChild('drain.mjs', server.url, 20);
    await app.message();
    app.process.kill('SIGTERM');
    await expect(locks.tryLock('held:7')).resolves.toBeNull();
    const refused = app.message();
    app.send('finish');
    expect(await refused).toBe('LOCK_UNAVAILABLE');
    await app.exit();
    expect(app.process.signalCode ?? app.process.exitCode).toBe('SIGTERM');
    const freed = await Promise.all(Array.from({ length: 20 }, (_, number) => locks.isLocked(`held:${number}`)));
    expect(freed).not.toContain(true);
  }, 20_000);

  it('a process exits by itself after app.close(), also while Redis is away', async () => {
    const own = await startRedis();
    const app = new TestChild('close-in-outage.mjs', own.url);
    await app.message();
    await own.stop();
    app.send('close');
    expect(await app.message()).toBe('LOCK_UNAVAILABLE');
    expect(await app.exit()).toBe(0);
  }, 20_000);
});
