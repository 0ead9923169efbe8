import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { until } from '../support/deferred.js';
import { COMMAND } from '../support/processes/command.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';

const [CTRL_C, CTRL_Z, CTRL_D] = ['\x03', '\x1a', '\x04'];

describe('nest-redis-lock on a terminal', () => {
  let server: RedisServer;
  let redis: Redis;
  let terminal: ChildProcess;
  let shown: string;

  withRedis((one) => ({ server, redis } = one));
  beforeEach(() => void (shown = ''));
  afterEach(() => void terminal.kill('SIGKILL'));

  const run = (command: string) => start(`run nightly -- sh -c '${command}'`);

  /** Types and runs this on a terminal of its own. */
  function start(args: string): void {
    const line = `${process.execPath} ${COMMAND} ${args}`;
    terminal = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
      env: { ...process.env, SHELL: '/bin/sh', REDIS_URL: server.url },
    });
    terminal.stdout!.on('data', (chunk: Buffer) => (shown += chunk.toString()));
  }

  const shows = (text: string) => until(() => shown.includes(text));
  const type = (text: string) => terminal.stdin!.write(text);

  it('the command is on the terminal, and reads what is typed', async () => {
    run('test -t 0 && test -t 1 && test -t 2 && echo ready; read line; echo "read <$line>"; cat; echo end');
    await shows('ready');
    type('some words\n');
    await shows('read <some words>');
    type(CTRL_D);
    expect(await once(terminal, 'exit')).toEqual([0, null]);
    expect(shown).toMatch(/end\r\n$/);
  }, 30_000);

  it('Ctrl-C reaches the command, each time', async () => {
    run('trap "echo first" INT; echo ready; while :; do sleep 0.05; done');
    await shows('ready');
    type(CTRL_C);
    await shows('first\r\n');
    type(CTRL_C);
    await until(() => shown.split('first\r\n').length > 2);
  }, 30_000);

  it('Ctrl-C ends a command that does nothing about it', async () => {
    run('echo ready; exec sleep 60');
    await shows('ready');
    type(CTRL_C);
    expect(await once(terminal, 'exit')).toEqual([130, null]);
  }, 30_000);

  it('Ctrl-Z stops nothing, and says why', async () => {
    run('echo ready; read line; echo "read <$line>"');
    await shows('ready');
    type(CTRL_Z);
    await shows('nest-redis-lock: Ctrl-Z does nothing here');
    type('go on\n');
    expect(await once(terminal, 'exit')).toEqual([0, null]);
    expect(shown).toMatch(/read <go on>\r\n$/);
  }, 30_000);

  it('a terminal that is closed ends the command', async () => {
    run('echo ready $$; exec sleep 60');
    await shows('ready');
    const pid = /ready (\d+)/.exec(shown)![1]!;
    terminal.kill('SIGKILL');
    await until(() => {
      try {
        return !process.kill(Number(pid), 0);
      } catch {
        return true;
      }
    });
  }, 30_000);

  it.each([
    ['yes', 'Released nightly.', 0],
    ['no', 'Nothing was released.', 1],
  ])(
    'unlock shows the holder and asks; the answer "%s" counts',
    async (said, shownThen, code) => {
      await redis.set('lock:nightly', 'another tool', 'PX', 60_000);
      start('unlock nightly --force --reason stuck');
      await shows('another tool');
      await shows('Type yes: ');
      type(`${said}\n`);
      expect(await once(terminal, 'exit')).toEqual([code, null]);
      expect(shown).toContain(shownThen);
      expect(await redis.exists('lock:nightly')).toBe(code);
    },
    30_000,
  );
});
