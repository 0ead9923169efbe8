import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { LockUnavailableError, type RedisLockModuleOptions } from 'nest-redis-lock';
import { saidBy } from '../../lib/redis/connection/redis-diagnosis.js';
import { turn, until } from '../support/deferred.js';
import { freePort } from '../support/free-port.mjs';
import { lockService, redisStore, trustingQuorum, type ClosableLockService } from '../support/stores/lock-services.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';
import { PASSWORD, TroubledRedis, urlOf } from '../support/redis/troubled-redis.js';

const COMMAND_TIMEOUT_MS = 800;
const WRONG_PASSWORD = 'S3cret-wrong';
const SECRET = /S3cret/;

/** How often two connections may be tried in the time that a row takes. */
const MOST_CONNECTIONS = 40;

const redis = new TroubledRedis();
beforeAll(() => redis.start());
afterAll(() => redis.stop());

/** What is being done to Redis: where it is, how it ends, and what to clean up. */
interface Trouble {
  readonly url: string;
  readonly end?: () => unknown;
  readonly stop?: () => unknown;
}

interface Outage {
  readonly what: string;
  readonly begin: () => Promise<Trouble>;
  /** What the caller is told, and what the cause says. */
  readonly told: RegExp;
  readonly cause: RegExp;
  /** Calls that only read go on. */
  readonly reads?: true;
  /** It begins when the service is in use. */
  readonly later?: true;
}

const config = (name: string, value: string | number) => redis.redis.config('SET', name, value);
const url = () => urlOf(redis.server.port);

const OUTAGES: readonly Outage[] = [
  {
    what: 'nobody listens',
    begin: async () => {
      await redis.server.kill();
      return { url: url(), end: () => redis.server.restart() };
    },
    told: /can't be reached \(waited 800 ms\): connect ECONNREFUSED 127\.0\.0\.1:\d+\. Check that it runs/,
    cause: /ECONNREFUSED/,
  },
  {
    what: 'it hangs',
    begin: async () => {
      process.kill(redis.server.pid, 'SIGSTOP');
      return { url: url(), end: () => process.kill(redis.server.pid, 'SIGCONT') };
    },
    told: /takes connections and says nothing for 800 ms: it hangs/,
    cause: /hangs/,
  },
  {
    what: 'it hangs while it is in use',
    later: true,
    begin: async () => ({ url: url(), end: () => process.kill(redis.server.pid, 'SIGCONT') }),
    told: /did not reply within 800 ms\. Look at its load and the network/,
    cause: /said nothing for 800 ms/,
  },
  {
    what: 'the network swallows everything',
    begin: async () => {
      const proxy = await startProxy(redis.server.port);
      proxy.dropRequests();
      return { url: urlOf(proxy.port), end: () => proxy.heal(), stop: () => proxy.stop() };
    },
    told: /takes connections and says nothing for 800 ms: it hangs/,
    cause: /hangs/,
  },
  {
    what: 'it is a replica',
    begin: async () => {
      await redis.redis.replicaof('127.0.0.1', 1);
      return { url: url(), end: () => redis.redis.replicaof('NO', 'ONE') };
    },
    told: /READONLY .*replica\. It is a replica: give the master as "connection", or the Sentinels/,
    cause: /^READONLY/,
    reads: true,
  },
  {
    what: 'it loads its data',
    begin: async () => {
      const server = await redis.another(
        '--key-load-delay',
        '20000',
        '--loading-process-events-interval-bytes',
        '1024',
      );
      const client = new Redis(server.url, { enableReadyCheck: false, retryStrategy: () => 20 }).on(
        'error',
        () => undefined,
      );
      await Promise.all(Array.from({ length: 500 }, (_, count) => client.set(`big:${count}`, randomBytes(1024))));
      await client.save();
      const loaded = server.restart();
      await until(() =>
        client.get('big:0').then(
          () => false,
          (error: Error) => error.message.startsWith('LOADING'),
        ),
      );
      return {
        url: urlOf(server.port),
        end: () => client.config('SET', 'key-load-delay', 0).then(() => loaded),
        stop: () => client.disconnect(),
      };
    },
    told: /LOADING Redis is loading its data.* It is reading its data from disk/,
    cause: /^LOADING/,
  },
  {
    what: 'it is out of memory',
    begin: async () => {
      await config('maxmemory', 1);
      return { url: url(), end: () => config('maxmemory', 0) };
    },
    told: /OOM command not allowed .*raise its "maxmemory"/,
    cause: /^OOM/,
    reads: true,
  },
  {
    what: 'the password is wrong',
    begin: async () => ({
      url: urlOf(redis.server.port, { password: WRONG_PASSWORD }),
      end: () => redis.allow(`>${WRONG_PASSWORD}`),
    }),
    told: /WRONGPASS .*\. Look at the user and the password in "connection"\.$/,
    cause: /^WRONGPASS/,
  },
  {
    what: 'there is no password',
    begin: async () => {
      await config('requirepass', PASSWORD);
      return { url: redis.server.url, end: () => config('requirepass', '') };
    },
    told: /NOAUTH .*\. It asks for a password: put it into "connection"\.$/,
    cause: /^NOAUTH/,
  },
  {
    what: 'it speaks no TLS',
    begin: async () => ({ url: urlOf(redis.server.port, { protocol: 'rediss' }) }),
    told: /TLS handshake got no answer\. Look whether this port speaks TLS/,
    cause: /TLS/,
  },
  {
    what: 'it speaks TLS only',
    begin: async () => ({ url: urlOf(redis.tlsPort) }),
    told: /whether it wants TLS \(rediss:\/\/\), or a certificate/,
    cause: /./,
  },
  {
    what: 'nobody trusts its certificate',
    begin: async () => ({ url: urlOf(redis.tlsPort, { protocol: 'rediss' }) }),
    told: /self-signed certificate\. Its certificate is not trusted: give the authority that signed it, "connection\.tls\.ca"/,
    cause: /self-signed certificate/,
  },
  {
    what: 'the user may run no scripts',
    begin: async () => {
      await redis.allow('-evalsha', '-eval');
      return { url: url(), end: () => redis.allow('+evalsha', '+eval') };
    },
    told: /NOPERM .*'evalsha' command( or its subcommand)?\. Its user lacks rights: docs\/redis\.md/,
    cause: /^NOPERM/,
  },
  {
    what: 'the user may not choose the database',
    begin: async () => {
      await redis.allow('-select');
      return { url: `${url()}/2`, end: () => redis.allow('+select') };
    },
    told: /can't be reached .*NOPERM .*'select' command( or its subcommand)?\. Its user lacks rights: docs\/redis\.md/,
    cause: /^NOPERM/,
  },
  {
    what: 'there is no such database',
    begin: async () => ({ url: `${url()}/99` }),
    told: /can't be reached .*DB index is out of range\. There is no such database/,
    cause: /out of range/,
  },
  {
    what: 'the user may not touch the keys',
    begin: async () => {
      await redis.allow('resetkeys', '~other:*');
      return { url: url(), end: () => redis.allow('~*') };
    },
    told: /NOPERM .*(one of the keys|a key\.).* Its user lacks rights/,
    cause: /^NOPERM/,
  },
  {
    what: 'the user may not do what a script does',
    begin: async () => {
      await redis.allow('-set');
      return { url: url(), end: () => redis.allow('+set') };
    },
    told: /(can't run this command or subcommand|no permissions to run the 'set' command)\. Its user lacks rights/,
    cause: /can't run this command|no permissions to run the 'set' command/,
    reads: true,
  },
  {
    what: 'it is a node of a cluster that is down',
    begin: async () => {
      const node = await redis.another(
        '--cluster-enabled',
        'yes',
        '--cluster-port',
        String(await freePort()),
        '--dbfilename',
        'none',
      );
      return { url: urlOf(node.port) };
    },
    told: /CLUSTERDOWN .*\. It is a node of a Redis Cluster: give an ioredis Cluster client/,
    cause: /^CLUSTERDOWN/,
  },
  {
    what: 'it has too many clients',
    begin: async () => {
      // Those that are connected stay; a client of an earlier test that is still closing makes no room.
      await config('maxclients', 1);
      return { url: url(), end: () => config('maxclients', 1000) };
    },
    told: /(max number of clients|EPIPE|ECONNRESET).* look at its "maxclients"/,
    cause: /max number of clients|EPIPE|ECONNRESET/,
  },
];

describe('While Redis is unusable', () => {
  const open: (() => unknown)[] = [];
  const unhandled: unknown[] = [];
  const noteUnhandled = (reason: unknown) => unhandled.push(reason);

  beforeAll(() => void process.on('unhandledRejection', noteUnhandled));
  afterAll(() => void process.off('unhandledRejection', noteUnhandled));
  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close();
  });

  function serviceOn(connection: RedisLockModuleOptions['connection'], log: string[] = []): ClosableLockService {
    const note = (what: string) => (_server: string, cause?: Error) => log.push(`${what} ${cause?.message}`);
    const locks = lockService(
      redisStore(
        { connection, commandTimeout: COMMAND_TIMEOUT_MS },
        { down: note('down'), unsubscribed: note('deaf') },
      ),
      { shutdownGrace: 0 },
    );
    open.push(() => locks.close());
    return locks;
  }

  const writesOf = (locks: ClosableLockService) => [
    () => locks.lock('a'),
    () => locks.tryLock('b'),
    () => locks.withLock('c', () => Promise.reject(new Error('it ran'))),
  ];
  const readsOf = (locks: ClosableLockService) => [
    () => locks.isLocked('d'),
    () => locks.inspect('e'),
    () => locks.forceUnlock('f'),
  ];

  /** How a call fails, and how much later than a plain timer of the time-out: a busy machine is late for both. */
  async function failureOf(
    call: () => Promise<unknown>,
  ): Promise<{ readonly error: unknown; readonly lateMs: number }> {
    const startedAt = performance.now();
    const plainTimer = sleep(COMMAND_TIMEOUT_MS, undefined, { ref: false }).then(() => performance.now() - startedAt);
    const error: unknown = await call().catch((error: unknown) => error);
    const tookMs = performance.now() - startedAt;
    return { error, lateMs: tookMs - (tookMs > COMMAND_TIMEOUT_MS ? await plainTimer : COMMAND_TIMEOUT_MS) };
  }

  /** Calls that all are told of an outage in time, without a secret. */
  async function unavailable(calls: readonly (() => Promise<unknown>)[]): Promise<LockUnavailableError[]> {
    const failures = await Promise.all(calls.map(failureOf));
    return failures.map(({ error, lateMs }) => {
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(lateMs).toBeLessThan(500);
      expect((error as LockUnavailableError).cause).toHaveProperty('message');
      expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(SECRET);
      return error as LockUnavailableError;
    });
  }

  it.each(OUTAGES)(
    'when Redis is unusable because $what, all calls fail in time with that reason, and work again later',
    async ({ begin, told, cause, reads, later }) => {
      const trouble = await begin();
      if (trouble.stop) open.push(trouble.stop);
      let isOver = false;
      const end = async () => {
        if (!isOver) await trouble.end?.();
        isOver = true;
      };
      open.push(end);
      const log: string[] = [];
      const locks = serviceOn(trouble.url, log);
      if (later) {
        await locks.withLock('warm up', () => undefined);
        process.kill(redis.server.pid, 'SIGSTOP');
      }

      const calls = reads ? writesOf(locks) : [...writesOf(locks), ...readsOf(locks)];
      for (const error of await unavailable(calls)) {
        expect(error.detail).toMatch(told);
        expect(saidBy(error.cause as Error)).toMatch(cause);
      }
      if (reads) {
        // After READONLY it looks for another master first.
        let answers: unknown;
        await until(
          async () =>
            (answers = await Promise.all(readsOf(locks).map((call) => call())).catch(() => undefined)) !== undefined,
        );
        expect(answers).toEqual([false, null, false]);
      } else await unavailable(calls);
      expect(`${log.join()} ${inspect(locks, { depth: 9, showHidden: true })}`).not.toMatch(SECRET);
      expect(new Set(log).size).toBe(log.length);

      await end();
      if (trouble.end) await until(() => locks.withLock('a', () => true).catch(() => false));
      await turn();
      expect(unhandled).toEqual([]);
    },
  );

  it('a client over TLS that the app lends, whose Redis is down, is not told to leave out TLS', async () => {
    const lent = new Redis(await freePort(), { tls: {}, retryStrategy: () => 20, maxRetriesPerRequest: null });
    lent.on('error', () => undefined);
    open.push(() => lent.disconnect());
    for (const error of await unavailable(writesOf(serviceOn(lent))))
      expect(error.detail).toMatch(/ECONNREFUSED [^ ]*\. Check that it runs/);
  });

  it('a server is not flooded with attempts to connect', async () => {
    await config('requirepass', PASSWORD);
    open.push(() => config('requirepass', ''));
    const attempts = async () => Number(/total_connections_received:(\d+)/.exec(await redis.redis.info('stats'))![1]);
    const before = await attempts();
    const locks = serviceOn(redis.server.url);
    const until2s = performance.now() + 2000;
    while (performance.now() < until2s) await unavailable(writesOf(locks));
    expect(await attempts()).toBeLessThan(before + MOST_CONNECTIONS);
  });

  it('an error of a quorum names what each node says', async () => {
    const ports = [redis.server.port, (await redis.another()).port, (await redis.another()).port];
    const locks = lockService(
      trustingQuorum(
        ports.map((port) => urlOf(port, { password: 'S3cret-of-nobody' })),
        COMMAND_TIMEOUT_MS,
      ),
      { shutdownGrace: 0 },
    );
    open.push(() => locks.close());
    for (const error of await unavailable([...writesOf(locks), ...readsOf(locks)])) {
      expect(error.detail).toMatch(
        /^\d of 3 nodes failed, and a lock needs 2 that agree\. Redis at 127\.0\.0\.1:\d+ .*WRONGPASS.* Redis at 127\.0\.0\.1:\d+ .*WRONGPASS/,
      );
    }
  });

  it('an error of a cluster names what its nodes say', async () => {
    const cluster = new Cluster([{ host: '127.0.0.1', port: redis.server.port }], {
      redisOptions: { username: 'locks', password: 'S3cret-of-nobody' },
      clusterRetryStrategy: () => 50,
    });
    cluster.on('error', () => undefined);
    open.push(() => cluster.disconnect());
    const locks = serviceOn(cluster);
    for (const error of await unavailable([...writesOf(locks), ...readsOf(locks)])) {
      expect(error.detail).toMatch(
        /The Redis Cluster did not run the command within 800 ms: .*WRONGPASS.* Look at the user and the password/,
      );
    }
  });
});
