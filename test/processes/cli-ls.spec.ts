import { once } from 'node:events';
import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { Command } from '../support/processes/command.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

const OWN = `${hostname()}:${process.pid}`;

describe('nest-redis-lock ls', () => {
  let server: RedisServer;
  let redis: Redis;
  let locks: ClosableLockService;

  withRedis((one) => ({ server, redis } = one));

  beforeEach(async () => {
    locks = lockService(redisStore({ connection: server.url }), { shutdownGrace: 0 });
    await locks.lock('account:42', { label: 'transfer' });
    await locks.lock('report:7', { mode: 'read', label: 'print' });
  });
  afterEach(() => locks.close());

  async function ls(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const command = new Command(server.url, ['ls', ...args]);
    const code = await command.exit;
    return { code, out: command.out, err: command.err };
  }

  it('lists all keys, in a table and as JSON; or those of a pattern, or of an age', async () => {
    // One after the other: each asks all processes, and a busy machine can make another command late.
    const shown = await ls();
    const json = await ls('acc*', '--json');
    const none = await ls('--older', '1h');
    expect(shown).toMatchObject({ code: 0, err: '' });
    const [heads, ...rows] = shown.out.trimEnd().split('\n');
    expect(heads).toMatch(/^KEY +STATE +HOLDER +AGE +LEASE LEFT +WAITING +LABEL$/);
    expect(rows.map((row) => row.replaceAll(/\d+(\.\d)? s/g, 'n s').split(/ {2,}/))).toEqual([
      ['account:42', 'held', OWN, 'n s', 'n s', '0', 'transfer'],
      ['report:7', '1 reader', OWN, 'n s', 'n s', '0', 'print'],
    ]);
    expect(json).toMatchObject({ code: 0, err: '' });
    const holders = [{ host: hostname(), pid: process.pid, label: 'transfer' }];
    expect(JSON.parse(json.out)).toMatchObject({ locks: [{ key: 'account:42', holders }], total: 1, unreached: [] });
    expect(none).toEqual({ code: 0, out: '', err: 'nest-redis-lock: Nobody holds such a lock, or waits for one.\n' });
  }, 30_000);

  it('ends with 1 when a process does not answer, and names it', async () => {
    const silent = redis.duplicate();
    await silent.subscribe('{lock:}:wake:api-3:4711:abcdefghijklmnop');
    const { code, out, err } = await ls();
    silent.disconnect();
    expect([code, out.split('\n').length]).toEqual([1, 4]);
    expect(err).toMatch(/^nest-redis-lock: The process api-3:4711 did not answer in time: .*\n$/);
  }, 30_000);

  it('ends with 1 when its user may not look for processes, and names the right', async () => {
    await redis.acl('SETUSER', 'blind', 'reset', 'on', '>pw', '~*', '&*', '+@all', '-pubsub|channels');
    const { code, err } = await ls('--redis', server.url.replace('redis://', 'redis://blind:pw@'));
    expect([code, err]).toEqual([1, expect.stringContaining('Give it the right "+pubsub|channels".')]);
  }, 30_000);

  it('ends with 74 when the disk is full', async () => {
    const command = new Command(server.url, ['ls', '--json'], { shell: 'exec "$0" "$@" >/dev/full' });
    expect(await command.exit).toBe(74);
    expect(command.err).toMatch(/^nest-redis-lock: The output could not be written: ENOSPC.*\n$/);
  }, 30_000);

  it('ends with 69 when Redis is down, and says why', async () => {
    const { code, out, err } = await ls('--redis', 'redis://127.0.0.1:1', '--json');
    expect([code, JSON.parse(out)]).toEqual([69, { locks: [], total: 0, unreached: [expect.anything()] }]);
    expect(err).toMatch(/^nest-redis-lock: .*ECONNREFUSED.*\n$/);
  }, 30_000);

  it('ls and inspect hear of all, too, when Redis is far away', async () => {
    const proxy = await startProxy(server.port);
    proxy.delay(60);
    const listed = await ls('--redis', proxy.url);
    const inspect = new Command(proxy.url, ['inspect', 'account:42', '--json']);
    const code = await inspect.exit;
    await proxy.stop();
    expect(listed).toMatchObject({ code: 0, err: '', out: expect.stringContaining('transfer') });
    expect([code, JSON.parse(inspect.out)]).toMatchObject([
      0,
      { holder: { label: 'transfer', fence: expect.any(Number) } },
    ]);
  }, 30_000);

  it('ends quietly when its reader leaves', async () => {
    const command = new Command(server.url, ['ls'], { shell: '"$0" "$@" | true' });
    await once(command.process, 'close');
    expect([await command.exit, command.err]).toEqual([0, '']);
  }, 30_000);
});
