import { isDeepStrictEqual } from 'node:util';
import { expect } from '@jest/globals';
import type { Redis } from 'ioredis';
import { saidBy } from '../../../lib/redis/connection/redis-diagnosis.js';
import { LOCKS } from '../../../lib/redis/lua/locks.script.js';
import { ALIVE_MS } from '../../../lib/store/lock-store.js';
import { withoutContendedPath } from './contended-path.js';
import { A, ALIVE, HOLDERS, LEASE, QUEUE, scriptBench, type ScriptBench } from './script-bench.js';
import { AHEAD, COUNTER, LAST, MINE, NEXT, outOfMemory, THEIRS, waiter, type ScriptCases } from './script-fixtures.js';

/** As it is before any mistake is made in it. */
const GENERAL = withoutContendedPath(LOCKS);

/** Writes something into Redis, a given time after the clock of the server. */
type Write = (redis: Redis, now: number) => Promise<unknown>;

const nothing: Write = () => Promise.resolve();
const holder =
  (value: string): Write =>
  (redis) =>
    redis.set(A, value, 'PX', LEASE);

const HOLDER: Record<string, Write> = {
  nobody: nothing,
  me: holder(MINE),
  'me, kept': holder(`${MINE} kept`),
  others: holder(THEIRS),
  'others with local waiters': holder('they.2+'),
  'another library': holder('a uuid'),
  'no token but the beginning of a shared lock': holder('nest-redis-lock'),
  'long text': holder('x'.repeat(1000)),
  readers: async (redis, now) => {
    await redis.set(A, 'nest-redis-lock:read', 'PX', LEASE);
    await redis.zadd(HOLDERS, now + 2 * LEASE, MINE);
  },
  'a list': (redis) => redis.rpush(A, 'x'),
};

/** Waiters, and until when they count as alive, from now on. */
const queue =
  (...waiters: readonly (readonly [entry: string, aliveMs: number])[]): Write =>
  async (redis, now) => {
    for (const [index, [entry, aliveMs]] of waiters.entries()) {
      await redis.zadd(QUEUE, index + 1, entry);
      await redis.zadd(ALIVE, now + aliveMs, entry.split(' ')[0]!);
    }
  };
const alive = (token: string, kind?: string) => [waiter(token, kind), ALIVE_MS] as const;

/** A waiter that arrived so long after now, and has not asked again. */
const arrived =
  (token: string, ms: number): Write =>
  (redis, now) =>
    redis.zadd(QUEUE, (now + ms) * 1000, waiter(token));

const WAITERS: Record<string, Write> = {
  none: nothing,
  one: queue(alive(NEXT)),
  two: queue(alive(NEXT), alive(LAST)),
  'one with local waiters': queue(alive('next.2+')),
  'one with a label': queue(alive(NEXT, 'exclusive/report')),
  'one with a short lease': queue([`${NEXT} 1000 exclusive`, ALIVE_MS]),
  'a reader': queue(alive(NEXT, 'read')),
  'a kind that nobody knows': queue(alive(NEXT, 'exclusively')),
  'no waiter': queue(['garbage', ALIVE_MS], alive(NEXT)),
  'a lease of nothing': queue([`${NEXT} 0 exclusive`, ALIVE_MS]),
  'a lease with a zero in front': queue([`${NEXT} 01000 exclusive`, ALIVE_MS]),
  'a lease of 14 digits': queue([`${NEXT} 10000000000000 exclusive`, ALIVE_MS]),
  'a dead one': queue([waiter(NEXT), -1_000], alive(LAST)),
  'one that was never alive': (redis) => redis.zadd(QUEUE, 1, waiter(NEXT)),
  'one that has just arrived': arrived(NEXT, -1_000),
  'one that arrived long ago': arrived(NEXT, -ALIVE_MS - 1_000),
  'one that arrived ahead of the time': arrived(NEXT, 8_000),
  'one that arrived long ago, and asked again': async (redis, now) => {
    await arrived(NEXT, -ALIVE_MS - 1_000)(redis, now);
    await redis.zadd(ALIVE, now + ALIVE_MS, NEXT);
  },
  'one that has just arrived, of a process that is gone': async (redis, now) => {
    await arrived('gone.1', -1_000)(redis, now);
    await arrived(NEXT, -500)(redis, now);
  },
  'two that have just arrived, and asked again': async (redis, now) => {
    await arrived(NEXT, -1_000)(redis, now);
    await arrived(LAST, -500)(redis, now);
    await redis.zadd(ALIVE, now + ALIVE_MS, NEXT, now + ALIVE_MS, LAST);
  },
  'one that is not subscribed': queue([waiter(NEXT), ALIVE_MS + 0.5]),
  'one of a process that is gone': queue(alive('gone.1'), alive(NEXT)),
  'one that is not subscribed, of a process that is gone': queue([waiter('gone.1'), ALIVE_MS + 0.5], alive(NEXT)),
  'one without a process': queue(alive('nobody')),
  myself: queue(alive('me.2'), alive(NEXT)),
  'a text in place of the queue': (redis) => redis.set(QUEUE, 'x'),
  'a text in place of the times': async (redis) => {
    await redis.zadd(QUEUE, 1, waiter(NEXT));
    await redis.set(ALIVE, 'x');
  },
};

const OPERATIONS = [
  ['release', MINE],
  ['release', THEIRS],
  ['queue', 'me.2'],
  ['queue', MINE],
  ['handoff', 'me.3+'],
  ['queue 1 exclusive/report', 'me.2'],
  ['queue 1 read', 'me.2'],
  ['unsubscribed', 'me.2'],
  ['try', 'me.2'],
] as const;

const counter =
  (value: number | string): Write =>
  (redis) =>
    redis.set(COUNTER, value);

const COUNTERS: Record<string, Write> = {
  missing: nothing,
  'just begun': counter(0),
  small: counter(1),
  'no number': counter('x'),
};

/** Everything that a script can change, and how long it lasts. */
const EVERYTHING = `
local all = {}
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  local read = {string = {'GET'}, zset = {'ZRANGE', 0, -1, 'WITHSCORES'}, list = {'LRANGE', 0, -1}, none = {'EXISTS'}}
  local command = read[kind]
  table.insert(command, 2, key)
  all[i] = {kind, redis.call(unpack(command)), redis.call('PTTL', key)}
end
return all`;

interface Trial {
  readonly writes: readonly Write[];
  readonly operation: (typeof OPERATIONS)[number];
  /** Whether the same call acquires another key first. */
  readonly isSecond?: boolean;
  readonly isFull?: boolean;
}

/** What an operation replies, tells and leaves. */
async function effects(
  bench: ScriptBench,
  ears: () => Promise<string[]>,
  { operation: [what, token], isSecond, isFull }: Trial,
) {
  const { redis, locks } = bench;
  const first = isSecond ? ([['try', 'me.9', LEASE, 'b']] as const) : [];
  const run = () =>
    locks(...first, [what, token, LEASE, 'a']).catch((error: Error) => `error: ${saidBy(error).slice(0, 20)}`);
  let reply: unknown;
  if (isFull) await outOfMemory(redis, async () => void (reply = await run()));
  else reply = await run();
  const left = (await redis.eval(EVERYTHING, 5, A, QUEUE, ALIVE, HOLDERS, COUNTER)) as unknown[][];
  // Those that ask in the same ms are in no order.
  for (const alike of left.slice(2, 4)) if (Array.isArray(alike[1])) alike[1] = pairs(alike[1]).sort();
  return { reply, heard: await ears(), left };
}

const pairs = (flat: readonly unknown[]) => flat.flatMap((one, at) => (at % 2 === 0 ? [[one, flat[at + 1]]] : []));

/** Puts words in the place of numbers that no two runs have in common: times, and fences that begin at the time. */
function timeless(value: unknown, now: number): unknown {
  if (Array.isArray(value)) return value.map((one) => timeless(one, now));
  const near = (number: number, to: number, ms: number) => Math.abs(number - to) < ms;
  if (typeof value === 'string' && /\d{13,}/.test(value))
    return value.replace(/\d{13,}(\.5)?/g, (digits) => {
      if (near(Number(digits) / 1000, now, 10_000)) return 'fence';
      for (const later of [0, -1_000, ALIVE_MS, LEASE, 2 * LEASE])
        if (near(Number(digits), now + later, 500)) return `now + ${later}${digits.endsWith('.5') ? '.5' : ''}`;
      return digits;
    });
  if (typeof value !== 'number') return value;
  if (near(Math.abs(value) / 1000, now, 10_000)) return Math.sign(value) * Infinity;
  for (const ms of [1_000, 2_000, 5_000, ALIVE_MS, 2 * ALIVE_MS, LEASE, 2 * LEASE, 86_400_000])
    if (near(value, ms, 400)) return ms;
  return value;
}

/** The contended path and the rest of the script do the same. */
async function sameEffects(bench: ScriptBench): Promise<void> {
  const general = scriptBench(bench.redis, GENERAL);
  const heard = await Promise.all(['next', 'they'].map((source) => bench.listens(source)));
  const ears = async () => (await Promise.all(heard.map((read) => read()))).flat();

  const resultOf = async (one: ScriptBench, trial: Trial): Promise<unknown> => {
    await one.redis.flushall();
    const [seconds, micros] = await one.redis.time();
    const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    for (const write of trial.writes) await write(one.redis, now);
    const { reply, heard, left } = await effects(one, ears, trial);
    return timeless([reply, heard, left], now);
  };
  const check = async (what: string, trial: Trial) => {
    // A stall of the machine between two readings of the clock makes a difference, too, but not three times.
    for (let tries = 1; ; tries++) {
      const [result, expected] = [await resultOf(bench, trial), await resultOf(general, trial)];
      if (tries < 3 && !isDeepStrictEqual(result, expected)) continue;
      expect([what, ...trial.operation, result]).toEqual([what, ...trial.operation, expected]);
      return;
    }
  };

  try {
    for (const [held, holds] of Object.entries(HOLDER))
      for (const [waiting, waits] of Object.entries(WAITERS))
        for (const operation of OPERATIONS)
          await check(`${held} / ${waiting}`, { writes: [counter(AHEAD), holds, waits], operation });
    for (const [held, holds] of Object.entries(HOLDER))
      for (const waiting of ['none', 'one', 'two'])
        for (const operation of OPERATIONS) {
          const writes = [counter(AHEAD), holds, WAITERS[waiting]!];
          await check(`${held} / ${waiting}, after another operation`, { writes, operation, isSecond: true });
        }
    for (const [count, counts] of Object.entries(COUNTERS))
      for (const operation of OPERATIONS)
        for (const held of ['me', 'others'])
          await check(`${held}, counter ${count}`, { writes: [counts, HOLDER[held]!, WAITERS['one']!], operation });
    for (const operation of OPERATIONS)
      for (const held of ['me', 'others'])
        await check(`${held}, out of memory`, {
          writes: [counter(AHEAD), HOLDER[held]!, WAITERS['one']!],
          operation,
          isFull: true,
        });
  } finally {
    general.close();
  }
}

export const CONTENDED_CASES: ScriptCases = {
  'do on the contended path what the rest of the script does': sameEffects,
};
