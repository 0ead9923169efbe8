import { Redis } from 'ioredis';
import { until } from '../deferred.js';
import { startRedis, type RedisServer } from './redis-server.js';

/** Independent redis-servers, and a client for each. */
export class RedisServers {
  readonly all: readonly RedisServer[];
  readonly clients: readonly Redis[];
  readonly #stopped = new Set<number>();
  readonly #dead = new Set<number>();

  private constructor(all: readonly RedisServer[]) {
    this.all = all;
    this.clients = all.map(({ url }) =>
      new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null }).on('error', () => undefined),
    );
  }

  static async start(count: number): Promise<RedisServers> {
    return new RedisServers(await Promise.all(Array.from({ length: count }, () => startRedis())));
  }

  get urls(): string[] {
    return this.all.map(({ url }) => url);
  }

  /** Those that can be asked. */
  get able(): readonly Redis[] {
    return this.clients.filter((_client, at) => !this.#stopped.has(at) && !this.#dead.has(at));
  }

  /** Resolves when all have been up for so long that they are trusted to know all locks with this lease. */
  async trusted(leaseMs: number): Promise<void> {
    for (const client of this.clients)
      await until(
        async () => (Number(/uptime_in_seconds:(\d+)/.exec(await client.info('server'))![1]) - 1) * 1000 >= leaseMs,
        leaseMs + 5000,
      );
  }

  /** Brings some back, empty. */
  async restart(...which: number[]): Promise<void> {
    await Promise.all(which.map((at) => this.all[at]!.restart()));
  }

  /** Lets a server stand still. */
  hang(at: number): void {
    this.#stopped.add(at);
    process.kill(this.all[at]!.pid, 'SIGSTOP');
  }

  goOn(at: number): void {
    if (this.#stopped.delete(at)) process.kill(this.all[at]!.pid, 'SIGCONT');
  }

  async kill(...which: number[]): Promise<void> {
    for (const at of which) {
      this.#stopped.delete(at);
      this.#dead.add(at);
    }
    await Promise.all(which.map((at) => this.all[at]!.kill()));
  }

  /** Brings all back, empty. */
  async reset(): Promise<void> {
    for (const at of [...this.#stopped]) this.goOn(at);
    await Promise.all([...this.#dead].map((at) => this.all[at]!.restart()));
    this.#dead.clear();
    await Promise.all(this.clients.map((client) => client.flushall()));
  }

  /** What stands in those that can be asked, but for the notes of the last fences. */
  async keys(): Promise<string[]> {
    const keys = await Promise.all(this.able.map((client) => client.keys('*')));
    return keys.flat().filter((key) => !key.endsWith(':fence'));
  }

  /** Resolves when nothing is left in them: a call is over when a majority has done it. */
  async nothingLeft(): Promise<void> {
    await until(async () => (await this.keys()).length === 0).catch(async () => {
      throw new Error(`Left in Redis: ${(await this.keys()).join(', ')}`);
    });
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.disconnect();
    await Promise.all(this.all.map((server) => server.stop()));
  }
}
