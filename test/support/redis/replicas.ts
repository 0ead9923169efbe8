import { Redis } from 'ioredis';
import { until } from '../deferred.js';
import { startRedis, type RedisServer } from './redis-server.js';

export interface Replicated {
  readonly master: RedisServer;
  readonly replicas: readonly RedisServer[];
  stop(): Promise<void>;
}

/** Starts a master and replicas that have caught up with it. */
export async function startReplicated(count: number): Promise<Replicated> {
  const master = await startRedis();
  await command(master.url, (redis) => redis.config('SET', 'repl-diskless-sync-delay', 0));
  const replicas = await Promise.all(Array.from({ length: count }, () => startRedis()));
  // Without a file: it would lie where the tests run.
  await Promise.all(
    replicas.map(({ url }) =>
      command(url, (redis) =>
        redis.config('SET', 'repl-diskless-load', 'swapdb').then(() => redis.replicaof('127.0.0.1', master.port)),
      ),
    ),
  );
  await command(master.url, (redis) => until(async () => (await redis.wait(count, 100)) === count, 20_000));
  return {
    master,
    replicas,
    stop: () => Promise.all([master, ...replicas].map((server) => server.stop())).then(() => undefined),
  };
}

async function command<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url);
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
