import { jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import type { Granted, LockStore } from '../../lib/store/lock-store.js';
import { deferred, until } from './deferred.js';
import type { Ears, Message } from './lock-model.js';
import { redisStore } from './lock-services.js';
import type { RedisServer } from './redis-server.js';

/** What a process was told. */
export type Heard = Message & Partial<Pick<Granted, 'fence'>>;

/** One process, with its own store or with a part in a shared one. */
export class ProgramProcess {
  readonly source: string;
  readonly store: LockStore;
  /** What the ears of its waiters are, if they still wait. */
  readonly ears: 'hears' | 'deaf';
  readonly heard: Heard[] = [];
  /** Tokens that it still knows. */
  readonly known = new Set<string>();
  isAlive = true;
  #markers = new Map<string, () => void>();

  constructor(source: string, store: LockStore, ears: 'hears' | 'deaf' = 'hears') {
    this.source = source;
    this.store = store;
    this.ears = ears;
    const tell = (message: Heard) => this.isAlive && message.token.startsWith(`${source}.`) && this.heard.push(message);
    store.listen({
      source,
      granted: (token, { fence, contended }) => {
        tell({ what: 'granted', token, fence, contended });
        return this.isAlive && this.known.has(token);
      },
      wanted: (token) => (this.#markers.has(token) ? this.#markers.get(token)!() : tell({ what: 'wanted', token })),
      lost: (token) => tell({ what: 'lost', token }),
      describe: () => undefined,
      missed: () => undefined,
    });
  }

  /** Resolves when it hears this marker, and so all that was said before. */
  hears(marker: string): Promise<void> {
    const { promise, resolve } = deferred();
    this.#markers.set(marker, resolve);
    return promise.finally(() => this.#markers.delete(marker));
  }
}

/** Where programs are run: processes that share locks. */
export interface ProgramWorld {
  readonly processes: readonly ProgramProcess[];
  /** Begins anew, with nothing locked. */
  begin(): Promise<void>;
  end(): Promise<void>;
  /** What becomes of a waiter of a process, when it is its turn. */
  ears(process: ProgramProcess, token: string): Ears;
  /** Time passes, in which nobody does anything; that of the queues only when it is told so. */
  pass(ms: number, ofQueues?: boolean): Promise<void>;
  /** Kills a process; another one takes its place. */
  crash(index: number): Promise<void>;
  /** Resolves when all have heard all that was said so far, and have answered it. */
  settle(): Promise<void>;
  /** The note of the last fence is lost. */
  forgetFences(): Promise<void>;
  /** What is left of locks and queues. */
  leftovers(): Promise<readonly string[]>;
}

const PROCESSES = 3;

/** One store in memory; its clock stands still. */
export class MemoryWorld implements ProgramWorld {
  processes: ProgramProcess[] = [];
  #generation = 0;

  async begin(): Promise<void> {
    this.#clock = Math.ceil(performance.now());
    this.#spy = jest.spyOn(performance, 'now').mockImplementation(() => this.#clock);
    const store = new MemoryLockStore();
    this.processes = Array.from({ length: PROCESSES }, () => this.#process(store));
  }

  async end(): Promise<void> {
    this.#spy?.mockRestore();
  }

  ears(process: ProgramProcess, token: string): Ears {
    return process.isAlive && process.known.has(token) ? 'hears' : 'absent';
  }

  async pass(ms: number): Promise<void> {
    this.#clock += ms;
  }

  async crash(index: number): Promise<void> {
    const dead = this.processes[index]!;
    dead.isAlive = false;
    this.processes[index] = this.#process(dead.store);
  }

  async settle(): Promise<void> {}

  async forgetFences(): Promise<void> {}

  async leftovers(): Promise<readonly string[]> {
    return [];
  }

  #clock = 0;
  #spy: { mockRestore(): void } | undefined;

  #process(store: LockStore): ProgramProcess {
    return new ProgramProcess(`memory-${++this.#generation}`, store);
  }
}

/** The last of its processes may not subscribe: it can't hear of its turn. */
const DEAF = 'deaf';

/** KEYS: none. ARGV: ms by which all that ends is to end sooner; "1" when the queues are to end sooner, too. */
const PASS = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  if key ~= '{lock:}:fence' then
    if redis.call('TYPE', key).ok == 'zset' and not string.find(key, 'queue$') then
      for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -ARGV[1], member) end
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
  readonly #server: RedisServer;
  readonly #redis: Redis;
  #generation = 0;
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
    await Promise.all(this.processes.map(({ store }) => store.close()));
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
      for (const process of hearing) void this.#redis.publish(this.#channel(process), `wanted ${marker}`);
      await Promise.all(heard);
      if (this.#heard() > before) await Promise.all(hearing.map(({ store }) => store.isLocked('none')));
    } while (this.#heard() > before);
  }

  async forgetFences(): Promise<void> {
    // A thousand of them may have been given within the same ms.
    await new Promise((done) => setTimeout(done, 5));
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
    const process = new ProgramProcess(`process-${++this.#generation}`, redisStore({ connection }), isDeaf ? 'deaf' : 'hears');
    const token = `${process.source}.warm`;
    const warm = { keys: [`warm-${this.#generation}`], token, leaseMs: 1000, sharing: 'exclusive', label: undefined, queue: true } as const;
    await process.store.acquire(warm);
    await process.store.release(warm);
    return process;
  }
}
