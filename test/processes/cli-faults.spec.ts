import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { until } from '../support/deferred.js';
import { Command, COMMAND, isRunning } from '../support/processes/command.js';
import { clock } from '../support/processes/contenders.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

const STUBBORN = [
  process.execPath,
  fileURLToPath(new URL('../support/processes/children/stubborn.mjs', import.meta.url)),
];
const SLOW_SPAWN = new URL('../support/processes/children/slow-spawn.mjs', import.meta.url).href;
const LEASE = '3s';

/** Runs the wrapper, and does not replace itself by it, as some shells do. */
const DIRECTLY = '"$0" "$@"; true';
const inShell = (script: string): string => `sh -c '${script.replaceAll("'", `'\\''`)}' "$0" "$@"`;
const SCRIPT = 'npm_lifecycle_script=nest-redis-lock';
/** npm runs a shell, which runs the wrapper. */
const NPX = `${SCRIPT} ${inShell(DIRECTLY)}; true`;
const BEHIND_DOTENV = `${SCRIPT} ${inShell(`${inShell(DIRECTLY)}; true`)}; true`;
const IN_ITS_SESSION = `${SCRIPT} ${inShell(`setsid ${inShell(DIRECTLY)} & wait`)}; true`;
const REPLACED_BY_SETSID = `${SCRIPT} ${inShell('exec setsid "$0" "$@"')}; true`;
const REPLACED_BY_DOTENV_IN_ITS_SESSION = `${SCRIPT} ${inShell(`exec setsid ${inShell(DIRECTLY)}`)}; true`;
/** The shell of npm replaces itself by the wrapper. */
const LAUNCHED = `${inShell(`${SCRIPT} ${DIRECTLY}`)}; true`;

/** What leaves a process behind that does not hear signals, and says its pid. */
const WITH_GRANDCHILD = [
  'sh',
  '-c',
  'sh -c "trap : TERM HUP INT; echo started \\$\\$; while :; do sleep 0.05; done" & wait',
];

describe('nest-redis-lock run, when things go wrong', () => {
  let server: RedisServer;
  let redis: Redis;
  let proxy: TcpProxy;
  let locks: ClosableLockService;
  let commands: Command[];

  withRedis((one) => ({ server, redis } = one));

  beforeEach(async () => {
    commands = [];
    proxy = await startProxy(server.port);
    locks = lockService(redisStore({ connection: server.url }));
  });

  afterEach(async () => {
    for (const { process } of commands) process.kill('SIGKILL');
    await Promise.all(commands.map(({ exit }) => exit));
    await locks.close();
    await proxy.stop();
  });

  function run(...args: string[]): Command {
    const command = new Command(proxy.url, ['run', 'nightly', '--lease', LEASE, ...args]);
    commands.push(command);
    return command;
  }

  /** When it was last alive. */
  const lastAlive = ({ out }: Command) => Number(/.*alive ([\d.]+)\n[^]*$/.exec(out)?.[1]);

  /** Waits for the lock, and says when it was granted. */
  async function nextGrant(): Promise<number> {
    const lock = await locks.lock('nightly', { wait: '20s' });
    const grantedAt = clock();
    await lock.unlock();
    return grantedAt;
  }

  /** The process that watches a wrapper. */
  async function watcherOf(pid: number): Promise<number> {
    let watcher: number | undefined;
    const find = () => {
      watcher = readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
        .find((one) => parentOf(one) === pid && argumentsOf(one).includes('watcher.js'));
      return watcher !== undefined;
    };
    await until(find);
    return watcher!;
  }

  it.each(['SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGINT'] as const)(
    'a grandchild that ignores %s keeps the lock, and the wrapper waits for it',
    async (signal) => {
      const command = run('--', ...WITH_GRANDCHILD);
      const grandchild = await command.said('started');
      command.signal(signal);
      await until(() => command.err.includes('what it started still runs'));
      // A child of the grandchild may be listed first.
      expect(command.err).toMatch(new RegExp(`\\(pid .*\\b${grandchild}\\b`));
      expect(await locks.isLocked('nightly')).toBe(true);
      process.kill(Number(grandchild), 'SIGKILL');
      // dash ignores INT and QUIT in what runs in the background.
      expect(await command.exit).toBe(128 + { SIGTERM: 15, SIGHUP: 1, SIGQUIT: 3, SIGINT: 2 }[signal]);
      expect(await locks.isLocked('nightly')).toBe(false);
    },
    30_000,
  );

  it('a grandchild that outlives the command keeps the lock; the exit code is that of the command', async () => {
    const command = run('--', 'sh', '-c', 'sleep 4 & exit 9');
    const exited = command.exit.then((code) => [code, clock()] as const);
    await until(() => locks.isLocked('nightly'));
    const grantedAt = await nextGrant();
    const [code, exitedAt] = await exited;
    expect(code).toBe(9);
    expect(exitedAt - grantedAt).toBeLessThan(3000);
    expect(command.err).toMatch(/what it started still runs \(pid \d+\)/);
  }, 30_000);

  it.each(['SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGINT'] as const)(
    '%s ends the wait at once: the command does not run, and nothing stays in Redis',
    async (signal) => {
      const lock = await locks.lock('nightly');
      const command = run('--wait', 'forever', '--', 'echo', 'ran');
      await until(async () => (await locks.inspect('nightly'))!.waiters.length === 1);
      command.signal(signal);
      expect(await command.exit).toBe(128 + { SIGTERM: 15, SIGHUP: 1, SIGQUIT: 3, SIGINT: 2 }[signal]);
      expect([command.out, command.err]).toEqual(['', '']);
      expect((await locks.inspect('nightly'))!.waiters).toEqual([]);
      await lock.unlock();
    },
    30_000,
  );

  it('a signal at the moment when the command starts stops it, or keeps it from starting', async () => {
    const codes: number[] = [];
    for (let round = 0; round < 20; round++) {
      const lock = await locks.lock('nightly');
      const command = run('--wait', 'forever', '--', 'sh', '-c', 'echo started $$; exec sleep 60');
      await until(async () => (await locks.inspect('nightly'))!.waiters.length === 1);
      void lock.unlock();
      await sleep(round);
      command.signal('SIGTERM');
      codes.push(await command.exit);
      const pid = /started (\d+)/.exec(command.out)?.[1];
      expect(pid !== undefined && isRunning(pid)).toBe(false);
      expect(await locks.isLocked('nightly')).toBe(false);
    }
    expect(new Set(codes)).toEqual(new Set([143]));
  }, 120_000);

  it('each signal reaches the command, also the second Ctrl-C, and those that end nothing', async () => {
    const command = run('--', ...STUBBORN);
    await command.said('started');
    for (const signal of ['SIGINT', 'SIGUSR1', 'SIGINT', 'SIGTERM'] as const) {
      const heard = command.out.split(`got ${signal}`).length;
      command.signal(signal);
      await until(() => command.out.split(`got ${signal}`).length > heard);
    }
    expect(await locks.isLocked('nightly')).toBe(true);
  }, 30_000);

  it('Redis is gone: the command gets SIGTERM a grace before the end, and SIGKILL before the next holder gets in', async () => {
    const command = run('--grace', '1s', '--', ...STUBBORN);
    await command.said('started');
    proxy.dropRequests();
    const grantedAt = await nextGrant();
    expect(await command.exit).toBe(77);
    expect(lastAlive(command)).toBeLessThan(grantedAt);
    expect(command.out).toContain('got SIGTERM');
    expect(command.err).toMatch(
      /Redis has not renewed the lock "nightly": the command gets SIGTERM now, and SIGKILL in/,
    );
  }, 30_000);

  it('Redis is gone, and the command ends in time by itself: with 77, unless it says that all is done', async () => {
    const ending = (code: number) => [
      'sh',
      '-c',
      `trap 'exit ${code}' TERM; echo started; while :; do sleep 0.05; done`,
    ];
    const codes: number[] = [];
    for (const code of [0, 5]) {
      const command = run('--grace', '1500ms', '--', ...ending(code));
      await command.said('started');
      proxy.dropRequests();
      codes.push(await command.exit);
      proxy.heal();
      await nextGrant();
    }
    expect(codes).toEqual([0, 77]);
  }, 30_000);

  it('an outage that is over before the grace changes nothing', async () => {
    const command = run('--grace', '100ms', '--', 'sh', '-c', 'echo started; sleep 4');
    await command.said('started');
    proxy.refuse();
    await sleep(800);
    proxy.welcome();
    expect(await command.exit).toBe(0);
    expect(command.err).toMatch(/can be reached again/);
  }, 30_000);

  it('Redis does not answer when the command has ended: its own exit code comes soon all the same', async () => {
    const command = run('--timeout', '500ms', '--', 'sh', '-c', 'echo started; read line; exit 4');
    await command.said('started');
    proxy.dropReplies();
    const endedAt = clock();
    command.process.stdin!.end('\n');
    expect(await command.exit).toBe(4);
    expect(clock() - endedAt).toBeLessThan(3000);
  }, 30_000);

  it('a lock that is taken by force ends the command at once, with the reason', async () => {
    const command = run('--', ...STUBBORN);
    await command.said('started');
    await locks.forceUnlock('nightly', { by: 'ops', reason: 'stuck' });
    expect(await command.exit).toBe(77);
    expect(command.err).toMatch(/"ops" took it away with forceUnlock\(\), because "stuck"\. The command was killed\./);
  }, 30_000);

  it('--max-hold ends a command that runs too long, and keeps the lock until it has ended', async () => {
    const command = run('--max-hold', '4s', '--grace', '500ms', '--', ...STUBBORN);
    await command.said('started');
    const startedAt = clock();
    const grantedAt = await nextGrant();
    expect(await command.exit).toBe(77);
    expect(lastAlive(command)).toBeLessThan(grantedAt);
    expect(grantedAt - startedAt).toBeGreaterThan(3900);
    expect(command.err).toMatch(/has run for 4\.0 s \(--max-hold\)/);
  }, 30_000);

  it('--max-hold: 77 whatever the stopped command says, but the code of one that ended before what it left running', async () => {
    const limit = ['--max-hold', '1500ms', '--grace', '300ms', '--'];
    const stopped = run(...limit, 'sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.05; done');
    expect(await stopped.exit).toBe(77);
    const ended = run(...limit, 'sh', '-c', 'sleep 60 & exit 3');
    expect(await ended.exit).toBe(3);
    expect(ended.err).toMatch(/\(--max-hold\): it gets SIGTERM now/);
  }, 30_000);

  it.each(['--max-hold', 'SIGSTOP', 'SIGKILL'])(
    'what makes a process group of its own, as timeout(1) does, belongs to the command: %s',
    async (fault) => {
      const inItsGroup = ['sh', '-c', 'timeout 60 "$0" "$@"; true', ...STUBBORN];
      const limit = fault === '--max-hold' ? ['--max-hold', '1s', '--grace', '300ms'] : [];
      const command = run(...limit, '--', ...inItsGroup);
      const pid = await command.said('started');
      if (fault !== '--max-hold') command.signal(fault as NodeJS.Signals);
      const grantedAt = await nextGrant();
      expect(lastAlive(command)).toBeLessThan(grantedAt);
      expect(isRunning(pid)).toBe(false);
    },
    30_000,
  );

  it('a signal reaches what has made a process group of its own, too', async () => {
    const command = run('--', 'sh', '-c', 'timeout 60 sh -c "echo started; exec sleep 60"');
    await command.said('started');
    command.signal('SIGTERM');
    expect(await command.exit).toBe(143);
  }, 30_000);

  it('a run inside of a run: the outer lock stays until the inner command has been killed', async () => {
    const inner = [process.execPath, COMMAND, 'run', 'inner', '--', ...STUBBORN];
    const command = run('--', ...inner);
    const pid = Number(await command.said('started'));
    const innerWrapper = parentOf(pid)!;
    const watcher = await watcherOf(innerWrapper);
    const grant = nextGrant();
    // It is slow to notice that the inner wrapper was killed.
    process.kill(watcher, 'SIGSTOP');
    process.kill(innerWrapper, 'SIGKILL');
    await until(() => !isRunning(innerWrapper));
    await sleep(500);
    expect(isRunning(pid)).toBe(true);
    process.kill(watcher, 'SIGCONT');
    const grantedAt = await grant;
    expect(await command.exit).toBe(137);
    expect(lastAlive(command)).toBeLessThan(grantedAt);
  }, 30_000);

  it('a run that the command has started by setsid is left alone, and does not keep the lock', async () => {
    const daemon = [process.execPath, COMMAND, 'run', 'daemon', '--', 'sleep', '60'];
    const command = run('--', 'sh', '-c', 'setsid "$@" > /dev/null 2>&1 & wait', 'sh', ...daemon);
    await until(() => locks.isLocked('daemon'));
    command.signal('SIGTERM');
    expect(await command.exit).toBe(143);
    const pid = (await locks.inspect('daemon'))!.holder.pid!;
    expect(isRunning(pid)).toBe(true);
    process.kill(pid, 'SIGTERM');
    await until(() => !isRunning(pid));
  }, 30_000);

  it('the wrapper is stopped for longer than the lease: the command is killed before the next holder gets in', async () => {
    const command = run('--', ...STUBBORN);
    const pid = await command.said('started');
    command.signal('SIGSTOP');
    const grantedAt = await nextGrant();
    expect(lastAlive(command)).toBeLessThan(grantedAt);
    expect(isRunning(pid)).toBe(false);
    command.signal('SIGCONT');
    expect(await command.exit).toBe(77);
  }, 30_000);

  it('the lock ends while the watcher starts: the command does not run', async () => {
    const shell = `NODE_OPTIONS=--import=${SLOW_SPAWN} exec "$0" "$@"`;
    const command = new Command(proxy.url, ['run', 'nightly', '--lease', '1s', '--', 'echo', 'runs'], { shell });
    commands.push(command);
    expect(await command.exit).toBe(77);
    expect(command.out).toBe('starts the watcher\n');
    await nextGrant();
  }, 30_000);

  it('the wrapper and its watcher are stopped for longer than the lease: the command is killed when they go on', async () => {
    const command = run('--', ...STUBBORN);
    const pid = await command.said('started');
    const watcher = await watcherOf(command.process.pid!);
    command.signal('SIGSTOP');
    process.kill(watcher, 'SIGSTOP');
    await nextGrant();
    command.signal('SIGCONT');
    await until(() => !isRunning(pid));
    process.kill(watcher, 'SIGCONT');
    expect(await command.exit).toBe(77);
  }, 30_000);

  it('a watcher that stood still for longer than the lease reads that it was renewed before it kills', async () => {
    const command = run('--', ...STUBBORN);
    const pid = await command.said('started');
    const watcher = await watcherOf(command.process.pid!);
    // It has heard of the command, and when to kill it.
    await sleep(1000);
    process.kill(watcher, 'SIGSTOP');
    await sleep(4500);
    process.kill(watcher, 'SIGCONT');
    const alive = command.out.length;
    await until(() => command.out.length > alive + 1000);
    expect(isRunning(pid)).toBe(true);
    command.signal('SIGKILL');
    await until(() => !isRunning(pid));
  }, 30_000);

  it('kill -9 of the wrapper takes the command with it, and all that it has started', async () => {
    const command = run('--', ...WITH_GRANDCHILD);
    const grandchild = await command.said('started');
    command.signal('SIGKILL');
    await until(() => !isRunning(grandchild));
    expect(await command.exit).toBe(137);
    expect(command.err).toContain('the process that held the lock was killed, and so was its command');
  }, 30_000);

  /** Runs a command by what a shell command starts. */
  function runBy(shell: string, script: string): Command {
    const command = new Command(proxy.url, ['run', 'nightly', '--', 'sh', '-c', `echo started $$; ${script}`], {
      shell,
    });
    commands.push(command);
    return command;
  }

  it.each([
    ['npx', NPX, ['SIGTERM', 'SIGHUP', 'SIGKILL']],
    ['npm, behind another command such as dotenv', BEHIND_DOTENV, ['SIGTERM', 'SIGKILL']],
  ] as const)(
    'the command does not outlive %s',
    async (_who, shell, signals) => {
      for (const signal of signals) {
        const command = runBy(shell, 'sleep 60');
        const pid = await command.said('started');
        command.signal(signal);
        await until(() => !isRunning(pid));
        await until(async () => !(await locks.isLocked('nightly')));
      }
    },
    60_000,
  );

  it.each([
    ['only who has started npm ends', LAUNCHED],
    ['npm ends, but the command is in a session of its own', IN_ITS_SESSION],
    ['npm ends, whose shell has replaced itself by setsid', REPLACED_BY_SETSID],
    ['npm ends, whose shell has replaced itself by setsid and dotenv', REPLACED_BY_DOTENV_IN_ITS_SESSION],
  ])(
    'the command goes on when %s',
    async (_when, shell) => {
      const command = runBy(shell, 'sleep 2; echo done');
      await command.said('started');
      command.signal('SIGKILL');
      await command.said('done');
    },
    30_000,
  );

  it('the watcher is started again when it is killed', async () => {
    const command = run('--', ...STUBBORN);
    const pid = await command.said('started');
    const first = await watcherOf(command.process.pid!);
    process.kill(first, 'SIGKILL');
    await until(() => !isRunning(first));
    await watcherOf(command.process.pid!);
    command.signal('SIGKILL');
    await until(() => !isRunning(pid));
  }, 30_000);

  it('a reader of the output that goes away ends the command as it would without the wrapper', async () => {
    const pipeline = '{ "$0" "$@"; echo code $? >&2; } | head -c 1';
    const command = new Command(proxy.url, ['run', 'nightly', '--', 'yes'], { shell: pipeline });
    expect(await command.exit).toBe(0);
    expect([command.out, command.err]).toEqual(['y', 'code 141\n']);
  }, 30_000);

  it('the command gets pipes that block, also when the wrapper has said something', async () => {
    const flags = 'echo started; read line; grep flags: /proc/self/fdinfo/2';
    const command = run('--', 'sh', '-c', flags);
    await command.said('started');
    proxy.refuse();
    await until(() => command.err.includes("can't be reached"));
    proxy.welcome();
    command.process.stdin!.end('\n');
    const O_NONBLOCK = 0o4000;
    expect(parseInt(await command.said('flags:'), 8) & O_NONBLOCK).toBe(0);
    expect(await command.exit).toBe(0);
  }, 30_000);

  it('the lock is renewed also while nobody reads what the wrapper has to say', async () => {
    const flood = 'head -c 10000000 /dev/zero >&2 & echo started; sleep 5; kill $!; echo done; exit 4';
    const command = run('--grace', '100ms', '--', 'sh', '-c', flood);
    command.process.stderr!.pause();
    await command.said('started');
    proxy.refuse();
    await sleep(800);
    proxy.welcome();
    await command.said('done');
    command.process.stderr!.resume();
    expect(await command.exit).toBe(4);
    expect(command.err).toContain("can't be reached");
  }, 30_000);

  it('nothing runs on when all is over', async () => {
    const command = run('--', 'sh', '-c', 'echo started $$');
    const pid = await command.said('started');
    const watcher = await watcherOf(command.process.pid!).catch(() => undefined);
    expect(await command.exit).toBe(0);
    await until(() => !isRunning(pid) && (watcher === undefined || !isRunning(watcher)));
    expect((await redis.keys('*')).filter((key) => !key.endsWith(':fence'))).toEqual([]);
  }, 30_000);
});

function parentOf(pid: number): number | undefined {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}

function argumentsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
