import type { Redis } from 'ioredis';
import { KeyNames } from '../../../lib/redis/wire/key-names.js';
import type { LuaScript } from '../../../lib/redis/lua/lua-script.js';
import { LOCKS } from '../../../lib/redis/lua/locks.script.js';
import { ALIVE_MS } from '../../../lib/store/lock-store.js';

export const names = new KeyNames('lock:');
export const [A, B, QUEUE, ALIVE, HOLDERS] = [
  names.lock('a'),
  names.lock('b'),
  names.queue('a'),
  '{lock:a}:alive',
  '{lock:a}:holders',
];

/** In ms: of all locks and waiters here, where nothing else is said. */
export const LEASE = 20_000;

/** What, and of how many keys and which kind; a token; a lease or another number; the keys. */
type Operation = readonly [what: string, token: string, number: number, ...keys: string[]];

/** An empty Redis on which to run the scripts, with nothing of ours around them. */
export interface ScriptBench {
  readonly redis: Redis;
  /** Returns the script's reply. */
  readonly run: (
    script: LuaScript<unknown>,
    keys: readonly string[],
    args: readonly (string | number)[],
    by?: Redis,
  ) => Promise<unknown>;
  /** Runs one or several operations on locks in one call. */
  readonly locks: (...operations: readonly Operation[]) => Promise<unknown>;
  readonly locksBy: (by: Redis, ...operations: readonly Operation[]) => Promise<unknown>;
  /** Subscribes as a process to its wake channel. Returns a function that reads what was heard since the last time. */
  readonly listens: (source: string) => Promise<() => Promise<string[]>>;
  /** Puts live waiters into the queue of `a`, in this order. */
  readonly queue: (...waiters: readonly string[]) => Promise<void>;
  /** Shares `a` among these tokens, each for this many ms from now. The key lasts longer. */
  readonly share: (how: string, holders: Readonly<Record<string, number>>) => Promise<void>;
  /** Connects as a user that may do everything but this. */
  readonly without: (right: string) => Promise<Redis>;
  readonly close: () => void;
}

/** @param locksScript what runs the operations on locks */
export function scriptBench(redis: Redis, locksScript = LOCKS): ScriptBench {
  const others: Redis[] = [];
  const another = (options = {}) => {
    const other = redis.duplicate(options);
    others.push(other);
    return other;
  };
  const run: ScriptBench['run'] = (script, keys, args, by = redis) =>
    by.eval(script.source, keys.length, ...keys, ...args);
  const locksBy: ScriptBench['locksBy'] = (by, ...operations) => {
    const keys = operations.flatMap(([, , , ...keys]) => keys.flatMap((key) => names.ofKey(key)));
    return run(
      locksScript,
      [names.fence, ...keys],
      operations.flatMap(([what, token, number]) => [what, token, number]),
      by,
    );
  };
  return {
    redis,
    run,
    locksBy,
    locks: (...operations) => locksBy(redis, ...operations),
    listens: async (source) => {
      const heard: string[] = [];
      const ears = another();
      ears.on('message', (_channel, message) => heard.push(message));
      await ears.subscribe(names.wakeChannel(source));
      return async () => {
        // Earlier messages come before the reply to this.
        await ears.subscribe('another');
        return heard.splice(0);
      };
    },
    queue: async (...waiters) => {
      const aliveUntil = Date.now() + ALIVE_MS;
      for (const [at, waiter] of waiters.entries())
        await redis
          .multi()
          .zadd(QUEUE, at + 1, waiter)
          .zadd(ALIVE, aliveUntil, waiter.split(' ')[0]!)
          .exec();
    },
    share: async (how, holders) => {
      await redis.set(A, `nest-redis-lock:${how}`, 'PX', 2 * LEASE);
      for (const [token, ms] of Object.entries(holders)) await redis.zadd(HOLDERS, Date.now() + ms, token);
    },
    without: async (right) => {
      await redis.acl('SETUSER', 'limited', 'reset', 'on', 'nopass', '~*', '&*', '+@all', right);
      return another({ username: 'limited', password: 'any' });
    },
    close: () => {
      for (const other of others) other.disconnect();
    },
  };
}
