import { setTimeout as sleep } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { LOCAL_WAITERS_MARK, type LockStore } from '../../../lib/store/lock-store.js';
import { until } from '../deferred.js';
import type { Ears } from './lock-model-answers.js';
import { redisStore } from '../stores/lock-services.js';
import { PROCESSES, ProgramProcess, type ProgramWorld } from './program-world.js';
import type { RedisServer } from '../redis/redis-server.js';

/** The last of its processes may not subscribe: it can't hear of its turn. */
const DEAF = 'deaf';

/**
 * KEYS: none. ARGV: ms by which all that ends is to end sooner, and waiters arrived sooner; "1" when the queues are to
 * end sooner, too.
 */
const PASS = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  if key ~= '{lock:}:fence' then
    if redis.call('TYPE', key).ok == 'zset' then
      local unit = string.find(key, 'queue$') and 1000 or 1
      for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -ARGV[1] * unit, member) end
    end
    local left = redis.call('PTTL', key)
    if left >= 0 and (ARGV[2] == '1' or not string.find(key, ':queue$') and not string.find(key, ':alive$')) then
      if left > tonumber(ARGV[1]) then redis.call('PEXPIRE', key, left - ARGV[1]) else redis.call('DEL', key) end
    end
  end
end
`;

/** A redis-server and a store for each process. Time passes by moving all ends nearer. */
export class RedisWorld implements ProgramWorld {
  processes: ProgramProcess[] = [];
  readonly trustsWaiters = false;
  lastFence = 0;
  readonly #server: RedisServer;
  readonly #redis: Redis;
  /** All that were ever made, also those that did not get as far as to be of a process. */
  readonly #stores: LockStore[] = [];
  #marker = 0;

  constructor(server: RedisServer) {
    this.#server = server;
    this.#redis = new Redis(server.url);
  }

  async open(): Promise<void> {
    await this.#redis.acl('SETUSER', DEAF, 'on', 'nopass', '~*', '&*', '+@all', '-subscribe');
    this.processes = await Promise.all(Array.from({ length: PROCESSES }, (_, index) => this.#process(index)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
    this.#redis.disconnect();
  }

  async begin(): Promise<void> {
    const left = await this.#keys();
    if (left.length > 0) await this.#redis.del(...left);
    for (const { known, heard } of this.processes) {
      known.clear();
      heard.length = 0;
    }
  }

  async end(): Promise<void> {}

  ears({ ears, isAlive, known }: ProgramProcess, token: string): Ears {
    if (ears === 'deaf') return 'deaf';
    if (!isAlive) return 'unheard';
    return known.has(token) ? 'hears' : 'gone';
  }

  async pass(ms: number, ofQueues = false): Promise<void> {
    await this.#redis.eval(PASS, 0, ms, ofQueues ? 1 : 0);
  }

  async crash(index: number): Promise<void> {
    const dead = this.processes[index]!;
    dead.isAlive = false;
    await dead.store.close();
    await until(async () => (await this.#redis.pubsub('NUMSUB', this.#channel(dead)))[1] === 0);
    this.processes[index] = await this.#process(index);
  }

  async settle(): Promise<void> {
    let before: number;
    do {
      before = this.#heard();
      const marker = `marker-${++this.#marker}`;
      const hearing = this.processes.filter(({ ears }) => ears === 'hears');
      const heard = hearing.map((process) => process.hears(marker));
      for (const process of hearing) void this.#redis.publish(this.#channel(process), `contended ${marker}`);
      await Promise.all(heard);
      if (this.#heard() > before) await Promise.all(hearing.map(({ store }) => store.isLocked('none')));
    } while (this.#heard() > before);
  }

  async lose(key: string): Promise<boolean> {
    await this.#redis.del(`lock:${key}`);
    return true;
  }

  async forgetFences(): Promise<void> {
    // A thousand of them may have been given within the same ms.
    await sleep(5);
    await this.#redis.del('{lock:}:fence');
  }

  async leftovers(): Promise<readonly string[]> {
    return this.#keys();
  }

  async #keys(): Promise<string[]> {
    return (await this.#redis.keys('*')).filter((key) => key !== '{lock:}:fence');
  }

  #heard(): number {
    return this.processes.reduce((sum, { heard }) => sum + heard.length, 0);
  }

  #channel({ source }: ProgramProcess): string {
    return `{lock:}:wake:${source}`;
  }

  async #process(index: number): Promise<ProgramProcess> {
    const isDeaf = index === PROCESSES - 1;
    const connection = isDeaf ? this.#server.url.replace('//', `//${DEAF}:any@`) : this.#server.url;
    const store = redisStore({ connection });
    this.#stores.push(store);
    const process = new ProgramProcess(randomUUID(), store, isDeaf ? 'deaf' : 'hears');
    // A run is not asked for before the process can hear of its turn, or knows that it can't.
    const warm = {
      keys: [process.source],
      token: `${process.source}.0${LOCAL_WAITERS_MARK}`,
      leaseMs: 1000,
      sharing: 'exclusive',
      label: undefined,
      queue: true,
    } as const;
    await process.store.acquire(warm);
    await process.store.release(warm);
    return process;
  }
}
