import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { Lock } from 'nest-redis-lock';
import { until } from '../support/deferred.js';
import { COMMAND } from '../support/processes/command.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

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
    shell(`${process.execPath} ${COMMAND} ${args}`);
  }

  function shell(line: string): void {
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

  it.each([
    ['Ctrl-D', CTRL_D, 'Nothing was released.\r\n', 1],
    ['Ctrl-C', CTRL_C, '', 130],
  ])(
    'unlock takes %s for a no',
    async (_, key, shownThen, code) => {
      await redis.set('lock:nightly', 'another tool', 'PX', 60_000);
      start('unlock nightly --force --reason stuck');
      await shows('Type yes: ');
      type(key);
      expect(await once(terminal, 'close')).toEqual([code, null]);
      const after = stripVTControlCharacters(shown.slice(shown.indexOf('Type yes: ')));
      expect(after).toBe(`Type yes: \r\n${shownThen}`);
      expect(await redis.exists('lock:nightly')).toBe(1);
    },
    30_000,
  );

  it('unlock reads the answer also after Ctrl-Z and "fg"', async () => {
    await redis.set('lock:nightly', 'another tool', 'PX', 60_000);
    shell('bash --norc -i');
    type(`${process.execPath} ${COMMAND} unlock nightly --force --reason stuck\n`);
    const asks = (times: number) => until(() => shown.split('Type yes: ').length > times);
    await asks(1);
    type(CTRL_Z);
    await shows('Stopped');
    type('fg\n');
    await asks(2);
    type('yes\n');
    await shows('Released nightly.');
    expect(await redis.exists('lock:nightly')).toBe(0);
  }, 30_000);

  describe('ls --watch', () => {
    const LEAVES = '\x1b[?1049l';
    const LS = `${process.execPath} ${COMMAND} ls --watch`;
    let proxy: TcpProxy;
    let locks: ClosableLockService;
    let lock: Lock;

    beforeEach(async () => {
      proxy = await startProxy(server.port);
      locks = lockService(redisStore({ connection: server.url }), { shutdownGrace: 0 });
      lock = await locks.lock('account:42', { label: 'transfer' });
    });
    afterEach(async () => {
      await locks.close();
      await proxy.stop();
    });

    /** What was drawn last. */
    const screen = () => stripVTControlCharacters(shown.slice(shown.lastIndexOf('\x1b[H')));
    const draws = (text: RegExp) => until(() => text.test(screen()));
    /** Runs this, and says how the terminal is before and after it. */
    const settings = (command: string) => `stty cols 80 rows 9; stty -g; ${command}; echo "ended $?"; stty -g`;

    it.each([
      ['q', 'q', 0],
      ['Ctrl-C', CTRL_C, 130],
    ])(
      'shows what changes, and %s gives the terminal back as it was',
      async (_, key, code) => {
        shell(settings(LS));
        await draws(/1 key, 0 callers wait .*account:42 +held .* 0 +transfer/s);
        const next = locks.lock('account:42', { fair: true, label: 'book' });
        await draws(/1 key, 1 caller waits .* 1 +transfer/s);
        await lock.unlock();
        await next;
        await draws(/1 key, 0 callers wait .* 0 +book/s);
        for (let n = 0; n < 9; n++) await locks.lock(`account:${n}`);
        await draws(/10 keys.*… and 5 more/s);
        expect(screen().split('\r\n').length).toBe(9);
        type(key);
        await once(terminal, 'exit');
        const [before, after] = shown.split(/[\r\n]+/).filter((line) => /^[\da-f:]{40,}$/.test(line));
        expect(after).toBe(before);
        expect(shown.slice(shown.indexOf(LEAVES) + LEAVES.length)).toMatch(new RegExp(`^ended ${code}\r\n`));
      },
      30_000,
    );

    it('goes on while Redis is away', async () => {
      start(`ls --watch --timeout 300ms --redis ${proxy.url}`);
      await draws(/account:42/);
      proxy.refuse();
      await draws(/not known/);
      proxy.welcome();
      await draws(/account:42/);
      type('q');
      expect(await once(terminal, 'exit')).toEqual([0, null]);
    }, 30_000);

    it('Ctrl-Z gives the terminal to the shell, and fg goes on', async () => {
      shell(`set -m; ${LS}; echo stopped; stty -a; fg`);
      await draws(/account:42/);
      type(CTRL_Z);
      await shows('stopped');
      await until(() => /stopped[^]*account:42/.test(shown));
      expect(shown.slice(shown.indexOf('stopped'))).toMatch(/^stopped\r\n[^]* icanon /);
      type('q');
      expect(await once(terminal, 'exit')).toEqual([0, null]);
    }, 30_000);
  });
});
