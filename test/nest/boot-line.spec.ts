import { afterEach, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import { RedisLockModule, type RedisLockModuleOptions } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';

const clients: (Redis | Cluster)[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

function borrowed<Client extends Redis | Cluster>(client: Client): Client {
  clients.push(client);
  return client;
}

/** The lines that a module logs when it boots. */
async function lines(options: RedisLockModuleOptions): Promise<unknown[]> {
  const said: unknown[] = [];
  const logger = {
    log: (line: unknown, context: string) => void (context === 'RedisLock' && said.push(line)),
    warn: () => undefined,
    error: () => undefined,
  };
  const module = await Test.createTestingModule({ imports: [RedisLockModule.forRoot(options)] })
    .setLogger(logger)
    .compile();
  await module.close();
  return said;
}

const masters = [1, 2, 3].map((port) => `redis://:hunter2@127.0.0.1:${port}`);

it.each<[string, () => RedisLockModuleOptions, string]>([
  [
    'one Redis',
    () => ({ connection: 'redis://app:hunter2@127.0.0.1:1' }),
    'Locks live in Redis at 127.0.0.1:1, database 0, under "lock:".',
  ],
  [
    'one Redis by TLS',
    () => ({ connection: new URL('rediss://:hunter2@example.org/3') }),
    'Locks live in Redis at example.org:6379 (TLS), database 3, under "lock:".',
  ],
  [
    'ioredis options',
    () => ({ connection: { port: 1, db: 2, password: 'hunter2' } }),
    'Locks live in Redis at localhost:1, database 2, under "lock:".',
  ],
  [
    'options with getters',
    () => ({
      connection: new (class {
        get host() {
          return '10.0.0.1';
        }
        get port() {
          return 1;
        }
        get db() {
          return 3;
        }
      })(),
    }),
    'Locks live in Redis at 10.0.0.1:1, database 3, under "lock:".',
  ],
  [
    'a URL with options',
    () => ({ connection: 'redis://127.0.0.1?port=6390' }),
    'Locks live in Redis at 127.0.0.1:6390, database 0, under "lock:".',
  ],
  [
    'a socket',
    () => ({ connection: { path: '/run/redis.sock' } }),
    'Locks live in Redis at /run/redis.sock, database 0, under "lock:".',
  ],
  [
    'Sentinels',
    () => ({ connection: { sentinels: [{ host: 'a', port: 1 }, { host: 'b' }], name: 'main', password: 'hunter2' } }),
    'Locks live in the Redis master "main" behind the Sentinels a:1, b:26379, database 0, under "lock:".',
  ],
  [
    "the app's own client",
    () => ({ connection: borrowed(new Redis({ port: 1, lazyConnect: true, password: 'hunter2' })) }),
    'Locks live in Redis at localhost:1, database 0 (the app\'s own client), under "lock:".',
  ],
  [
    'a Cluster',
    () => ({ connection: borrowed(new Cluster([{ port: 1 }], { lazyConnect: true })) }),
    'Locks live in a Redis Cluster, under "lock:".',
  ],
  [
    'a quorum',
    () => ({ connection: masters, keyPrefix: 'app:' }),
    'Locks live in a quorum of 3: Redis at 127.0.0.1:1, database 0; Redis at 127.0.0.1:2, database 0; ' +
      'Redis at 127.0.0.1:3, database 0, under "app:".',
  ],
  [
    'durability',
    () => ({ connection: 'redis://127.0.0.1:1', durability: { replicas: 2, aof: true } }),
    'Locks live in Redis at 127.0.0.1:1, database 0, under "lock:", durability of 2 replica(s) on disk.',
  ],
  ['a store', () => ({ store: new MemoryLockStore() }), "Locks live in the app's own store (MemoryLockStore)."],
  [
    'a module of another name',
    () => ({ name: 'billing', store: new MemoryLockStore() }),
    'Locks of "billing" live in the app\'s own store (MemoryLockStore).',
  ],
])('one line at boot says where locks live, without passwords: %s', async (_what, options, line) => {
  const said = await lines(options());
  expect(said).toEqual([line]);
});
