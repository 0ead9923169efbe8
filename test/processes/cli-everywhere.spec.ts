import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LockInfo, LockList } from 'nest-redis-lock';
import type { Finding } from '../../lib/cli/doctor/finding.js';
import { freePort } from '../support/free-port.mjs';
import { Command } from '../support/processes/command.js';
import { startCluster } from '../support/redis/redis-cluster.js';
import { startSentinel } from '../support/redis/redis-sentinel.js';
import { RedisServers } from '../support/redis/redis-servers.js';

const LEASE_MS = 8000;
const KEY = 'account:42';

interface Place {
  /** What `--redis` is given. */
  readonly url: string;
  /** The servers that the doctor names. */
  readonly servers: readonly string[];
  stop(): Promise<unknown>;
}

const hostsOf = (ports: readonly { readonly port: number }[]): string[] => ports.map(({ port }) => `127.0.0.1:${port}`);

async function behindSentinel(): Promise<Place> {
  const sentinel = await startSentinel();
  const { sentinels, name } = sentinel.connection;
  const down = { port: await freePort() };
  const url = `redis+sentinel://${hostsOf([down, ...sentinels]).join(',')}/${name}`;
  return { url, servers: [`the master "${name}" behind Sentinel`], stop: () => sentinel.stop() };
}

async function onCluster(): Promise<Place> {
  const cluster = await startCluster();
  const servers = hostsOf(cluster.masters);
  return { url: `redis+cluster://${servers[0]}`, servers, stop: () => cluster.stop() };
}

let servers: RedisServers;
/** They are trusted when they have been up for a lease: while the others have their turn. */
beforeAll(async () => void (servers = await RedisServers.start(3)));

async function onQuorum(): Promise<Place> {
  await servers.trusted(LEASE_MS);
  await servers.kill(1);
  return { url: servers.urls.join(','), servers: hostsOf(servers.all), stop: () => servers.stop() };
}

describe.each([
  ['Redis behind Sentinel, one of which is down', behindSentinel],
  ['a Redis Cluster', onCluster],
  ['a quorum, one node of which is down', onQuorum],
])('nest-redis-lock on %s', (_, start) => {
  const isQuorum = start === onQuorum;
  let place: Place;
  let commands: Command[];

  beforeAll(async () => {
    commands = [];
    place = await start();
  }, 40_000);

  afterAll(async () => {
    for (const { process } of commands) process.kill('SIGKILL');
    await Promise.all(commands.map(({ exit }) => exit));
    await place.stop();
  });

  function command(...args: string[]): Command {
    const made = new Command(place.url, args);
    commands.push(made);
    return made;
  }

  async function json<T>(...args: string[]): Promise<{ code: number; found: T; err: string }> {
    const asked = command(...args, '--json');
    const code = await asked.exit;
    return { code, found: JSON.parse(asked.out) as T, err: asked.err };
  }

  const runs = (...args: string[]) => command('run', KEY, '--lease', `${LEASE_MS}ms`, ...args);

  it('run holds a lock that ls and inspect show; unlock takes it away, and the next command gets it', async () => {
    const first = runs('--label', 'transfer', '--', 'sh', '-c', 'echo fence $LOCK_FENCE; exec sleep 60');
    const fence = Number(await first.said('fence'));
    const second = runs('--wait', '30s', '--', 'sh', '-c', 'echo fence $LOCK_FENCE');
    let list = await json<LockList>('ls', 'account:*');
    while (list.found.locks[0]?.waiterCount !== 1) list = await json<LockList>('ls', 'account:*');
    expect(list.found).toMatchObject({ total: 1, locks: [{ key: KEY, holders: [{ fence, label: 'transfer' }] }] });
    expect([list.code, list.found.unreached.map(({ name }) => name)]).toEqual(
      isQuorum ? [1, [place.servers[1]]] : [0, []],
    );
    expect(list.err).toEqual(isQuorum ? expect.stringContaining(place.servers[1]!) : '');
    const { found } = await json<LockInfo>('inspect', KEY);
    expect(found).toMatchObject({ key: KEY, holder: { fence, label: 'transfer' } });
    // There is no queue on a quorum.
    expect(found.waiters.length).toBe(isQuorum ? 0 : 1);
    const unlock = command('unlock', KEY, '--token', found.holder.token, '--reason', 'stuck', '--yes');
    expect([await unlock.exit, unlock.out]).toEqual([0, `Released ${KEY}.\n`]);
    expect([await first.exit, first.err]).toEqual([77, expect.stringContaining('stuck')]);
    expect(await second.exit).toBe(0);
    expect(Number(await second.said('fence'))).toBeGreaterThan(fence);
    expect(await json('inspect', KEY)).toMatchObject({ code: 1, found: null });
  }, 60_000);

  it('inspect says that nobody waits, except on a quorum, where nobody knows', async () => {
    const held = runs('--', 'sh', '-c', 'echo runs; exec sleep 60');
    await held.said('runs');
    const shown = command('inspect', KEY);
    expect([await shown.exit, shown.out]).toEqual([0, expect.stringContaining('Held by')]);
    expect(shown.out.includes('Nobody waits.')).toBe(!isQuorum);
    held.signal('SIGTERM');
    await held.exit;
  }, 30_000);

  it('doctor examines each server', async () => {
    const { code, found } = await json<Finding[]>('doctor');
    expect(new Set(found.map(({ about }) => about))).toEqual(new Set([...place.servers, 'locks']));
    const problems = found.filter(({ level }) => level === 'problem').map(({ check, text }) => `${check}: ${text}`);
    if (isQuorum) expect([code, problems[0]]).toEqual([1, expect.stringMatching(/^connection: connect ECONNREFUSED/)]);
    else expect([code, problems]).toEqual([0, []]);
  }, 30_000);
});
