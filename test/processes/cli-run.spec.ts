import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { until } from '../support/deferred.js';
import { Command } from '../support/processes/command.js';

const NODE = process.execPath;

describe('nest-redis-lock run', () => {
  let server: RedisServer;
  let redis: Redis;
  let locks: ClosableLockService;

  withRedis((one) => ({ server, redis } = one));
  beforeEach(() => void (locks = lockService(redisStore({ connection: server.url }))));
  afterEach(() => locks.close());

  const run = (...args: string[]) => new Command(server.url, ['run', ...args]);

  /** What is left in Redis of this command. */
  const left = async () => (await redis.keys('*')).filter((key) => !key.endsWith(':fence'));

  it('run passes on arguments as they are, stdin, stdout and the exit code, and leaves nothing behind', async () => {
    const code = 'process.stdin.pipe(process.stdout); console.log(process.argv.slice(1).join()); process.exitCode = 7';
    const command = run('nightly', '--', NODE, '-e', code, '--', '$HOME', 'a b', '--wait');
    command.process.stdin!.end('from stdin');
    expect(await command.exit).toBe(7);
    expect([command.out, command.err]).toEqual(['$HOME,a b,--wait\nfrom stdin', '']);
    expect(await left()).toEqual([]);
  });

  it('run shows the command its key, token and fence, and others its label', async () => {
    const code =
      'const { LOCK_KEY, LOCK_FENCE, LOCK_TOKEN } = process.env; console.log("locked", LOCK_KEY, LOCK_FENCE, LOCK_TOKEN); process.stdin.resume()';
    const command = run('nightly', '--label', 'books', '--', NODE, '-e', code);
    const said = await command.said('locked');
    const { holder } = (await locks.inspect('nightly'))!;
    expect(said).toBe(`nightly ${holder.fence} ${holder.token}`);
    expect(holder).toMatchObject({ pid: command.process.pid, label: 'books' });
    command.process.stdin!.end();
    expect(await command.exit).toBe(0);
  });

  it('run ends with 75 when somebody else holds the lock, with -E another code, with --skip 0', async () => {
    const lock = await locks.lock('nightly');
    const commands = [[], ['-E', '3'], ['--skip']].map((more) => run('nightly', '--wait', '0', ...more, '--', 'false'));
    expect(await Promise.all(commands.map(({ exit }) => exit))).toEqual([75, 3, 0]);
    expect(commands.map(({ err }) => err)).toEqual([
      expect.stringMatching(/^nest-redis-lock: Could not take lock "nightly" for "false": it is held/),
      expect.stringMatching(/it is held/),
      '',
    ]);
    await lock.unlock();
  });

  it('run waits for its turn', async () => {
    const lock = await locks.lock('nightly');
    const command = run('nightly', '--wait', 'forever', '--', 'true');
    await until(async () => (await locks.inspect('nightly'))!.waiters.length === 1);
    await lock.unlock();
    expect(await command.exit).toBe(0);
  });

  it('run ends with 69 when Redis is down, without running the command', async () => {
    const command = new Command('redis://127.0.0.1:1', ['run', 'nightly', '--timeout', '100ms', '--', 'echo', 'ran']);
    expect(await command.exit).toBe(69);
    expect(command.err).toMatch(/^nest-redis-lock: Redis at 127\.0\.0\.1:1 can't be reached .*\n$/);
    expect(command.out).toBe('');
  });

  it('run ends as a shell does with a command that does not exist, that can not be run, or that a signal ends', async () => {
    const missing = [['no-such-command'], ['redis://:secret@h']];
    const commands = [...missing, ['/etc/passwd'], ['sh', '-c', 'kill -9 $$']].map((one) =>
      run('nightly', '--', ...one),
    );
    expect(await Promise.all(commands.map(({ exit }) => exit))).toEqual([127, 127, 126, 137]);
    expect(commands[0]!.err).toBe('nest-redis-lock: "no-such-command": there is no such command.\n');
    expect(commands[1]!.err).toBe('nest-redis-lock: "redis://…@h": there is no such command.\n');
    expect(await left()).toEqual([]);
  });

  it('run passes a signal on to all that the command has started, and ends with 128 + n', async () => {
    const command = run('nightly', '--', 'sh', '-c', 'sleep 60 & echo started $!; wait');
    await command.said('started');
    command.signal('SIGTERM');
    expect(await command.exit).toBe(143);
    expect(await locks.isLocked('nightly')).toBe(false);
  });

  it('run keeps the lock with --at-least, after the command has ended', async () => {
    expect(await run('nightly', '--at-least', '1m', '--', 'true').exit).toBe(0);
    expect(await run('nightly', '--skip', '--', 'false').exit).toBe(0);
    expect(await redis.pttl('lock:nightly')).toBeGreaterThan(50_000);
  });
});
