import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { until } from '../deferred.js';
import { freePort } from '../free-port.mjs';
import { launch, startRedis, type RedisServer } from './redis-server.js';

const NAME = 'main';
const SENTINELS = 3;
const SERVERS = 3;

/** How often the sentinels look, in ms. By themselves they take up to ten seconds to notice who is a replica now. */
const PERIODS = {
  'info-period': 100,
  'ping-period': 300,
  'ask-period': 100,
  'publish-period': 200,
  'election-timeout': 2000,
  'slave-reconf-timeout': 2000,
};

/** A redis-server that is the master at one time, and a replica at another. */
export interface SentinelServer extends RedisServer {
  /** For commands of the test itself. */
  readonly redis: Redis;
}

/** A master with two replicas, and three sentinels that choose another master when it is gone. */
export interface RedisSentinel {
  /** As ioredis wants to know them. */
  readonly connection: RedisOptions & {
    readonly sentinels: readonly { host: string; port: number }[];
    readonly name: string;
  };
  readonly servers: readonly SentinelServer[];
  /** Whom the sentinels name now. */
  master(): Promise<SentinelServer>;
  /** The others, alive or not. */
  replicas(): Promise<readonly SentinelServer[]>;
  /** Kills the master; resolves when the sentinels name another one. */
  killMaster(): Promise<SentinelServer>;
  /**
   * Lets the sentinels choose another master, as an operator does; resolves when they name it. The old one is alive.
   */
  failover(): Promise<SentinelServer>;
  /**
   * Starts again who was killed, empty; resolves when all replicas of the master have caught up, and the sentinels
   * know.
   */
  heal(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts them all. What the sentinels find out about each other in seconds is written down for them before. */
export async function startSentinel(): Promise<RedisSentinel> {
  const servers = await Promise.all(Array.from({ length: SERVERS }, startServer));
  const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-sentinel-'));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', removeFolder);
  for (const { redis } of servers.slice(1)) await redis.replicaof('127.0.0.1', servers[0]!.port);

  const plans: Plan[] = [];
  while (plans.length < SENTINELS) plans.push({ id: randomBytes(20).toString('hex'), port: await freePort() });
  const sentinels = await Promise.all(
    plans.map(async ({ port }, self) => {
      const file = join(folder, `${port}.conf`);
      writeFileSync(file, sentinelConf(folder, plans, self, servers));
      return launch([file, '--sentinel'], '+monitor');
    }),
  );
  const asked = plans.map(({ port }) =>
    new Redis(port, { retryStrategy: () => 100, maxRetriesPerRequest: null, disconnectTimeout: 100 }).on(
      'error',
      () => undefined,
    ),
  );
  await Promise.all(
    asked.map((redis) =>
      redis.call('SENTINEL', 'DEBUG', ...Object.entries(PERIODS).flat()).catch((error: Error) => {
        // Redis 6 can't be told: there, failovers take longer.
        if (!error.message.startsWith('ERR Unknown subcommand')) throw error;
      }),
    ),
  );

  const portNamedBy = async (redis: Redis) =>
    Number(((await redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as string[])[1]);
  const named = (port: number) => servers.find((server) => server.port === port)!;
  const master = async () => named(await portNamedBy(asked[0]!));
  const isReplica = async ({ redis }: SentinelServer, of: number) =>
    new RegExp(`role:slave[^]*master_port:${of}\\s[^]*master_link_status:up`).test(await redis.info('replication'));
  const settled = async () => {
    const { port, redis } = await master();
    const ready = await Promise.all([
      ...asked.map(
        async (one) =>
          (await portNamedBy(one)) === port &&
          knows(packed(await one.call('SENTINEL', 'MASTER', NAME)), await one.call('SENTINEL', 'REPLICAS', NAME)),
      ),
      ...servers.map(async (server) => server.port === port || isReplica(server, port)),
      redis
        .info('replication')
        .then((info) => info.includes('role:master') && info.includes(`connected_slaves:${SERVERS - 1}`)),
    ]);
    return ready.every(Boolean) && (await redis.wait(SERVERS - 1, 100)) === SERVERS - 1;
  };
  const another = async (old: number, patienceMs = 30_000) => {
    await until(async () => (await Promise.all(asked.map(portNamedBy))).every((port) => port !== old), patienceMs);
    return master();
  };
  await until(settled, 30_000);

  return {
    connection: { sentinels: plans.map(({ port }) => ({ host: '127.0.0.1', port })), name: NAME },
    servers,
    master,
    replicas: async () => {
      const { port } = await master();
      return servers.filter((server) => server.port !== port);
    },
    killMaster: async () => {
      const old = await master();
      await old.kill();
      return another(old.port);
    },
    failover: async () => {
      const old = await master();
      for (let tries = 1; ; tries++) {
        await until(
          () =>
            asked[0]!.call('SENTINEL', 'FAILOVER', NAME).then(
              () => true,
              () => false,
            ),
          30_000,
        );
        try {
          return await another(old.port, 6000);
        } catch (error) {
          // On a busy machine the sentinels may give up, as no replica has answered in time.
          if (tries === 5) throw error;
        }
      }
    },
    heal: async () => {
      const { port } = await master();
      await Promise.all(
        servers.map(async (server) => {
          if (server.isRunning) return void process.kill(server.pid, 'SIGCONT');
          await server.restart();
          await configure(server.redis);
          await server.redis.replicaof('127.0.0.1', port);
        }),
      );
      await until(settled, 60_000);
    },
    stop: async () => {
      for (const redis of [...asked, ...servers.map(({ redis }) => redis)]) redis.disconnect();
      await Promise.all([...sentinels, ...servers].map((server) => server.stop()));
      process.off('exit', removeFolder);
      removeFolder();
    },
  };
}

async function startServer(): Promise<SentinelServer> {
  const server = await startRedis();
  const redis = new Redis(server.url, {
    retryStrategy: () => 20,
    maxRetriesPerRequest: null,
    disconnectTimeout: 100,
  }).on('error', () => undefined);
  await configure(redis);
  return Object.assign(server, { redis });
}

/** Without a file: it would lie where the tests run. */
async function configure(redis: Redis): Promise<void> {
  await redis.config('SET', 'repl-diskless-sync-delay', 0);
  await redis.config('SET', 'repl-diskless-load', 'swapdb');
}

interface Plan {
  readonly id: string;
  readonly port: number;
}

/** What a sentinel has in its configuration when it knows all others. */
function sentinelConf(
  folder: string,
  plans: readonly Plan[],
  self: number,
  servers: readonly SentinelServer[],
): string {
  return [
    `port ${plans[self]!.port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel myid ${plans[self]!.id}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${servers[0]!.port} ${Math.ceil((SENTINELS + 1) / 2)}`,
    // One is slower: if all three stood for election at once, each with its own vote, nobody would win.
    `sentinel down-after-milliseconds ${NAME} ${self === 0 ? 1500 : 500}`,
    `sentinel failover-timeout ${NAME} 1000`,
    `sentinel parallel-syncs ${NAME} ${SERVERS - 1}`,
    ...servers.slice(1).map(({ port }) => `sentinel known-replica ${NAME} 127.0.0.1 ${port}`),
    ...plans
      .filter((_, index) => index !== self)
      .map(({ id, port }) => `sentinel known-sentinel ${NAME} 127.0.0.1 ${port} ${id}`),
    '',
  ].join('\n');
}

/** Whether a sentinel sees everybody, and no failover is under way. */
function knows(master: ReadonlyMap<string, string>, replicas: unknown): boolean {
  const all = (replicas as unknown[]).map(packed);
  return (
    master.get('flags') === 'master' &&
    Number(master.get('num-other-sentinels')) === SENTINELS - 1 &&
    all.length === SERVERS - 1 &&
    all.every((replica) => replica.get('flags') === 'slave' && replica.get('master-link-status') === 'ok')
  );
}

function packed(flat: unknown): ReadonlyMap<string, string> {
  if (!Array.isArray(flat)) return new Map(Object.entries(flat as Record<string, string>));
  return new Map(
    Array.from({ length: flat.length / 2 }, (_, index) => [String(flat[2 * index]), String(flat[2 * index + 1])]),
  );
}
