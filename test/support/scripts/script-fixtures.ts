import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { locksInCluster } from '../../../lib/redis/lua/locks.script.js';
import { ALIVE_MS } from '../../../lib/store/lock-store.js';
import { ALIVE, LEASE, names, QUEUE, type ScriptBench } from './script-bench.js';

/** What a script must do. */
export type ScriptCases = Readonly<Record<string, (bench: ScriptBench) => Promise<void>>>;

/** The fence counter. */
export const COUNTER = names.fence;

/** The second key of the locks script in a cluster, which never exists. */
export const ABSENT = '{lock:}:none:fence';

export const CLUSTER_LOCKS = locksInCluster(names.wakeChannel(''));

/** Far in the future of the server's clock, in µs. */
export const AHEAD = 5e15;

export const [MINE, THEIRS, NEXT, LAST] = ['me.1', 'they.1', 'next.1', 'last.1'];
export const waiter = (token: string, kind = 'exclusive') => `${token} ${LEASE} ${kind}`;

/** What Redis 6 and 7 say of a command that the user may not run. */
export const mayNot = (command: string) =>
  new RegExp(`can't run this command|no permissions to run the '${command}' command`);

/** Counts how often a command was called since the statistics were reset. */
export async function callsIn(redis: Redis): Promise<(command: string) => number> {
  const stats = await redis.info('commandstats');
  return (command) =>
    Number(new RegExp(`^cmdstat_${command.replace('|', '\\|')}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
}

export const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');

export async function outOfMemory(redis: Redis, work: () => Promise<void>): Promise<void> {
  await redis.config('SET', 'maxmemory', 1);
  await work().finally(() => redis.config('SET', 'maxmemory', 0));
}

/**
 * Puts this many waiters of one process that is not subscribed ahead of all others of `a`. Without `alive`, they have
 * not asked for too long.
 */
export const crowd = (redis: Redis, count: number, alive: boolean) =>
  redis.eval(
    `for n = 1, ARGV[1] do
      redis.call('ZADD', KEYS[1], n / 10000, 'crowd.' .. n .. ' ${LEASE} exclusive')
      redis.call('ZADD', KEYS[2], ARGV[2], 'crowd.' .. n)
    end`,
    2, QUEUE, ALIVE, count, Date.now() + (alive ? ALIVE_MS : -1),
  ); // prettier-ignore
