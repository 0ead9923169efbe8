import { once } from 'node:events';
import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { until } from '../support/deferred.js';
import { Command } from '../support/processes/command.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

const KEY = 'account:42';

/** A line of JSON. */
interface Line {
  readonly at: string;
  readonly event: string;
  readonly key: string;
  readonly what: string;
  readonly holder: { readonly pid: number };
  readonly waiterCount: number;
  /** Those of a list. */
  readonly locks: readonly unknown[];
  readonly unreached: readonly unknown[];
}

describe('nest-redis-lock watch, and ls --watch in a pipe', () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let locks: ClosableLockService;
  let commands: Command[];

  withRedis((one) => ({ server } = one));

  beforeEach(async () => {
    commands = [];
    proxy = await startProxy(server.port);
    locks = lockService(redisStore({ connection: server.url }), { shutdownGrace: 0 });
  });

  afterEach(async () => {
    for (const { process } of commands) process.kill('SIGKILL');
    await Promise.all(commands.map(({ exit }) => exit));
    await locks.close();
    await proxy.stop();
  });

  function start(args: readonly string[], options?: { shell: string }): Command {
    const command = new Command(proxy.url, args, options);
    commands.push(command);
    return command;
  }

  const watch = (...args: string[]) => start(['watch', '--every', '100ms', ...args]);

  const linesOf = ({ out }: Command) =>
    out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);

  /** The first line of this event about this. */
  async function told(command: Command, event: string, about: Partial<Line> = {}): Promise<Line> {
    const wanted = Object.entries({ event, ...about });
    const found = () =>
      linesOf(command).find((line) => wanted.every(([name, value]) => line[name as keyof Line] === value));
    await until(() => found() !== undefined);
    return found()!;
  }

  it('tells who holds, acquires, waits and ends, in lines of JSON, until Ctrl-C', async () => {
    const first = await locks.lock(KEY, { label: 'transfer' });
    const other = await locks.lock('report:7');
    const command = watch('account:*');
    const holder = { host: hostname(), pid: process.pid, label: 'transfer', fence: first.fence };
    const held = await told(command, 'held');
    expect(held).toMatchObject({ at: expect.any(String), key: KEY, mode: 'exclusive', waiterCount: 0, holder });
    expect(Math.abs(Date.parse(held.at) - Date.now())).toBeLessThan(30_000);
    const next = locks.lock(KEY, { label: 'book', fair: true });
    expect(await told(command, 'waiting')).toMatchObject({ key: KEY, before: 0, waiterCount: 1 });
    await first.unlock();
    expect(await told(command, 'ended')).toMatchObject({ holder });
    expect(await told(command, 'acquired')).toMatchObject({ holder: { label: 'book', fence: (await next).fence } });
    command.signal('SIGINT');
    expect([await command.exit, command.err]).toEqual([130, '']);
    expect(linesOf(command).filter(({ key }) => key !== KEY)).toEqual([]);
    await other.unlock();
  }, 30_000);

  it('tells that a process has died, and when the lock that it left behind has ended', async () => {
    const dead = start(['run', KEY, '--lease', '2s', '--', 'sh', '-c', 'echo runs; exec sleep 60']);
    await dead.said('runs');
    const command = watch();
    const { holder } = await told(command, 'held');
    dead.signal('SIGKILL');
    expect(await told(command, 'orphaned')).toMatchObject({ key: KEY, holder: { pid: holder.pid, label: 'sh' } });
    await told(command, 'ended');
    // A question that was on its way to it got no answer.
    const ofLock = linesOf(command).filter(({ key }) => key === KEY);
    expect(ofLock.map(({ event }) => event)).toEqual(['held', 'orphaned', 'ended']);
  }, 30_000);

  it('tells that a lock has ended whose work is done, while `atLeast` keeps the key and others wait', async () => {
    const lock = await locks.lock(KEY, { label: 'nightly', atLeast: '60s' });
    const command = watch();
    await told(command, 'held');
    const waits = new AbortController();
    const waiting = locks.lock(KEY, { wait: '60s', signal: waits.signal }).catch(() => undefined);
    await told(command, 'waiting', { waiterCount: 1 });
    await lock.unlock();
    expect(await told(command, 'ended')).toMatchObject({
      waiterCount: 1,
      holder: { label: 'nightly', fence: lock.fence },
    });
    waits.abort();
    await waiting;
    await told(command, 'waiting', { waiterCount: 0 });
    const ofHolders = linesOf(command).filter(({ holder }) => holder !== undefined);
    expect(ofHolders.map(({ event }) => event)).toEqual(['held', 'ended']);
  }, 30_000);

  it('goes on while Redis is away, says so, and takes no lock for ended because of it', async () => {
    await locks.lock(KEY);
    const command = watch('--timeout', '300ms');
    const list = start(['ls', '--watch', '--json', '--timeout', '300ms']);
    await told(command, 'held');
    await until(() => linesOf(list).length > 0);
    proxy.refuse();
    expect(await told(command, 'unreached', { what: 'server' })).toMatchObject({ message: expect.any(String) });
    await until(() => linesOf(list).at(-1)!.unreached.length > 0);
    proxy.welcome();
    await told(command, 'reached', { what: 'server' });
    // Its process may still be connecting when the first list comes.
    await until(() => linesOf(list).at(-1)!.unreached.length === 0);
    expect(linesOf(list).at(-1)).toMatchObject({ locks: [{ key: KEY }], unreached: [] });
    await locks.lock('later');
    await told(command, 'acquired', { key: 'later' });
    expect(linesOf(command).filter(({ event }) => event === 'ended' || event === 'orphaned')).toEqual([]);
    expect(command.err).toMatch(
      /^(nest-redis-lock: .*\n)+nest-redis-lock: The server .* answers again, or is gone\.\n/,
    );
  }, 30_000);

  it.each([
    [['watch', '--every', '100ms'], 'watch'],
    [['ls', '--watch', '--json'], 'ls --watch'],
  ])(
    '%j ends quietly, with 0, when its reader leaves',
    async (args) => {
      await locks.lock(KEY);
      const command = start(args, { shell: '{ "$0" "$@"; echo "ended with $?" >&2; } | head -n 1' });
      await until(() => command.out !== '');
      // What nobody reads is noticed when there is something to tell.
      await locks.lock('later');
      await once(command.process, 'close');
      expect([linesOf(command).length, command.err]).toEqual([1, 'ended with 0\n']);
    },
    30_000,
  );

  it('watch ends with 69 when Redis is down from the start', async () => {
    const command = watch('--redis', 'redis://127.0.0.1:1');
    expect([await command.exit, command.out]).toEqual([69, '']);
    expect(command.err).toMatch(/^nest-redis-lock: .*ECONNREFUSED.*\n$/);
  }, 30_000);

  it('ls --watch without --json needs a terminal', async () => {
    const command = start(['ls', '--watch']);
    expect([await command.exit, command.err]).toEqual([64, expect.stringContaining('--watch draws on a terminal')]);
  }, 30_000);
});
