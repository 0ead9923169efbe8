import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { LockLostError, LockTimeoutError, LockUnavailableError, type Lock, type LockOptions } from 'nest-redis-lock';
import { turn } from '../deferred.js';
import type { ClosableLockService } from '../stores/lock-services.js';
import { Random } from './random.js';

/** A moment to let pass: so many microtasks, turns of the event loop, or ms. */
interface Moment {
  readonly of: 'microtask' | 'turn' | 'ms';
  readonly count: number;
}

/** One call of a schedule. */
interface Call {
  readonly service: number;
  readonly method: 'lock' | 'tryLock' | 'withLock';
  readonly keys: readonly string[];
  readonly options: LockOptions;
  readonly begins: Moment;
  readonly holds: Moment;
  /** When its wait is aborted, counted from its begin. */
  readonly aborts: Moment | undefined;
}

export interface Schedule {
  readonly seed: number;
  readonly calls: readonly Call[];
  /** When the connections are cut. */
  readonly cuts: readonly Moment[];
}

/** Where a schedule is run. */
export interface Stage {
  readonly services: readonly ClosableLockService[];
  /** Breaks the connections of a service. */
  readonly cut: (service: number) => void;
  /** Asks the server for a sign of life, where there is one. */
  readonly ping?: () => Promise<unknown>;
}

/** What was seen; nobody but the failed promise of a test should be surprised by it. */
export interface Outcome {
  /** What must never be. */
  readonly wrong: readonly string[];
  readonly grants: number;
  /** Locks that were had, and given back. */
  readonly released: readonly { readonly key: string; readonly token: string }[];
}

const ABORTED = 'aborted by the schedule';

/** An event loop or a server that stood still for this long may lose a lock of the shortest lease, and be right. */
const STALL_MS = 50;

/** Draws a schedule. Its keys are its own, so that schedules leave each other alone. */
export function drawSchedule(seed: number, services: number, withCuts: boolean): Schedule {
  const random = new Random(seed);
  const names = ['a', 'b', 'c'].map((name) => `${seed}:${name}`);
  const moment = (longestMs: number): Moment => {
    const of = random.pick(['microtask', 'turn', 'ms'] as const);
    return { of, count: random.below(of === 'microtask' ? 30 : of === 'turn' ? 8 : longestMs + 1) };
  };
  const call = (): Call => ({
    service: random.below(services),
    method: random.pick(['lock', 'tryLock', 'withLock']),
    keys: random.chance(0.15)
      ? names.slice(random.below(2), 2 + random.below(2))
      : [random.chance(0.7) ? names[0]! : random.pick(names)],
    options: {
      wait: random.pick([0, 1, 5, 20, 100, 10_000, 10_000, 10_000]),
      fair: random.chance(0.4),
      ...(random.chance(0.25) ? { watchdog: false, lease: 1000 } : { lease: random.pick([150, 10_000, 10_000]) }),
      ...(random.chance(0.1) && { maxWaiters: random.below(3) }),
    },
    begins: moment(15),
    holds: moment(4),
    aborts: random.chance(0.35) ? moment(12) : undefined,
  });
  return {
    seed,
    calls: Array.from({ length: 8 + random.below(25) }, call),
    cuts: withCuts && random.chance(0.4) ? Array.from({ length: 1 + random.below(2) }, () => moment(20)) : [],
  };
}

/** Runs a schedule until every promise of it has settled. */
export async function runSchedule({ calls, cuts }: Schedule, { services, cut, ping }: Stage): Promise<Outcome> {
  const wrong: string[] = [];
  const inside = new Map<string, Lock>();
  const lastFence = new Map<string, number>();
  const released: { key: string; token: string }[] = [];
  let grants = 0;
  const stalls = watchStalls(ping);

  const enter = (lock: Lock) => {
    grants++;
    for (const key of lock.keys) {
      const other = inside.get(key);
      if (other?.isHeld) wrong.push(`${lock.token} and ${other.token} were inside of ${key} together`);
      if (lock.fence <= (lastFence.get(key) ?? 0))
        wrong.push(`the fence of ${key} went from ${lastFence.get(key)} to ${lock.fence}`);
      inside.set(key, lock);
      lastFence.set(key, lock.fence);
    }
  };
  const leave = (lock: Lock) => {
    for (const key of lock.keys) {
      released.push({ key, token: lock.leases[0]!.token });
      if (inside.get(key) === lock) inside.delete(key);
    }
  };
  const work = async (lock: Lock, holds: Moment) => {
    enter(lock);
    await passed(holds);
    leave(lock);
  };

  const run = async ({ service, method, keys, options, begins, holds, aborts }: Call) => {
    await passed(begins);
    const locks = services[service]!;
    const controller = new AbortController();
    if (aborts) void passed(aborts).then(() => controller.abort(ABORTED));
    const told = { ...options, signal: controller.signal };
    try {
      if (method === 'withLock') return await locks.withLock(keys, (lock) => work(lock, holds), told);
      const lock = await locks[method](keys, told);
      if (!lock) return;
      await work(lock, holds);
      await lock.unlock();
    } catch (error) {
      const rough = cuts.length > 0 || stalls.longestMs() > STALL_MS;
      const late =
        error instanceof LockUnavailableError || (error instanceof LockLostError && error.reason === 'expired');
      if (error !== ABORTED && !(error instanceof LockTimeoutError) && !(rough && late))
        wrong.push(`${method} of ${keys.join(' and ')} failed: ${inspect(error)}`);
    }
  };

  const settled = Promise.all([
    ...calls.map(run),
    ...cuts.map(async (moment, index) => {
      await passed(moment);
      cut(index % services.length);
    }),
  ]);
  let timer: NodeJS.Timeout;
  const tooLong = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      wrong.push('not every promise settled within 15 s');
      resolve();
    }, 15_000);
  });
  await Promise.race([settled, tooLong]);
  clearTimeout(timer!);
  stalls.stop();
  return { wrong, grants, released };
}

async function passed({ of, count }: Moment): Promise<void> {
  if (of === 'ms') return sleep(count);
  for (let left = count; left > 0; left--) await (of === 'turn' ? turn() : undefined);
}

/** Watches how long the event loop, or the server, stands still. */
function watchStalls(ping?: () => Promise<unknown>): { readonly longestMs: () => number; readonly stop: () => void } {
  let tickedAt = performance.now();
  let longest = 0;
  let askedAt: number | undefined;
  const look = () => {
    const time = performance.now();
    longest = Math.max(longest, time - tickedAt, time - (askedAt ?? time));
    tickedAt = time;
  };
  const ask = async () => {
    askedAt = performance.now();
    await ping!().catch(() => undefined);
    look();
    askedAt = undefined;
  };
  const timer = setInterval(() => {
    look();
    if (ping && askedAt === undefined) void ask();
  }, 5);
  return {
    longestMs: () => {
      look();
      return longest;
    },
    stop: () => clearInterval(timer),
  };
}
