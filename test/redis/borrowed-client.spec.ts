import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis, type Cluster } from 'ioredis';
import { LockUnavailableError, type Lock } from 'nest-redis-lock';
import { subscriberIn } from '../../lib/redis/cluster/cluster-subscriber.js';
import { BorrowedState } from '../../lib/redis/connection/borrowed-state.js';
import { subscriberOf } from '../../lib/redis/connection/further-client.js';
import { SILENT } from '../../lib/redis/connection/outage-log.js';
import { RedisConnection } from '../../lib/redis/connection/redis-connection.js';
import { borrowedClient } from '../../lib/redis/connection/redis-client.js';
import { deferred, turn, until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';

describe('A borrowed client', () => {
  let server: RedisServer;
  let redis: Redis;
  let client: Redis;
  let locks: ClosableLockService;
  let lines: string[];

  withRedis((one) => ({ server, redis } = one));

  const service = (connection = client): ClosableLockService =>
    lockService(redisStore({ connection, commandTimeout: 300 }, { unfit: (_server, problem) => lines.push(problem) }), {
      lease: 3000,
      shutdownGrace: 0,
    });

  beforeEach(async () => {
    lines = [];
    client = new Redis(server.url, { db: 1 });
    locks = service();
    await locks.isLocked('warm up');
  });

  afterEach(async () => {
    await locks.close();
    client.disconnect();
  });

  async function acquired(from: ClosableLockService): Promise<Lock> {
    let lock: Lock | undefined;
    await until(async () => (lock = await from.lock('a').catch(() => undefined)) !== undefined);
    return lock!;
  }

  const address = () => ({ host: '127.0.0.1', port: Number(new URL(server.url).port) });

  const elsewhere = /the app has switched its client to database 3, but its locks live in database 1.*duplicate/;

  it('a borrowed client acquires no lock in another database, and says once what to do', async () => {
    await client.select(3);
    await expect(locks.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching(elsewhere));
    await expect(locks.isLocked('a')).rejects.toThrow(LockUnavailableError);
    expect(await client.dbsize()).toBe(0);
    expect(lines).toEqual([expect.stringMatching(elsewhere)]);
    await client.select(1);
    await locks.withLock('a', () => expect(locks.isLocked('a')).resolves.toBe(true));
  });

  it.each([
    ['is ready', 1, (lent: Redis) => once(lent, 'ready')],
    ['connects', 1, () => undefined],
    ['is to select another one when it has connected', 2, (lent: Redis) => void lent.select(2)],
  ])('locks live in the database of a borrowed client that %s when the module starts', async (_what, db, before) => {
    const lent = new Redis(server.url, { db: 1 });
    await before(lent);
    const services = service(lent);
    services.onApplicationBootstrap();
    if (lent.status !== 'ready') await once(lent, 'ready');
    await lent.select(3);
    await expect(services.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching(/switched its client/));
    await lent.select(db);
    await services.withLock('a', () => expect(lent.exists('lock:a')).resolves.toBe(1));
    await services.close();
    lent.disconnect();
  });

  it.each([true, 1, 2] as const)(
    'a client that reconnects at each error (%p) gets the script sent itself when the server does not know it',
    async (answer) => {
      const [host, port] = ['127.0.0.1', Number(new URL(server.url).port)];
      const reconnectOnError = () => answer;
      const lent = new Redis({ host, port, reconnectOnError });
      const services = [lent, { host, port, reconnectOnError }].map((connection) =>
        lockService(redisStore({ connection }), { lease: 3000, shutdownGrace: 0 }),
      );
      try {
        for (const each of services) {
          await redis.script('FLUSH');
          expect(await each.withLock('a', () => 'ran')).toBe('ran');
          const lock = await each.lock('a');
          await redis.script('FLUSH');
          expect(await each.withLock('b', () => 'ran')).toBe('ran');
          expect(await lock.unlock()).toBe(true);
        }
      } finally {
        await Promise.all(services.map((each) => each.close()));
        lent.disconnect();
      }
    },
  );

  it('a borrowed client keeps its locks when the app switches it to another database and back', async () => {
    const lock = await locks.lock('a');
    await client.select(3);
    await expect(lock.extend()).rejects.toThrow(LockUnavailableError);
    expect(lock.isHeld).toBe(true);
    await client.select(1);
    await lock.extend();
    expect(await lock.unlock()).toBe(true);
  });

  it('a borrowed client is asked for its database again also when its connection drops twice', async () => {
    const proxy = await startProxy(server.port);
    const lent = new Redis(proxy.url, { retryStrategy: () => 1 });
    await lent.select(2);
    const isChosen = deferred();
    const state = new BorrowedState(lent, { unfit: () => undefined, chosen: () => isChosen.resolve() });
    state.start();
    expect(state.mustWait()).toBe(true);
    await isChosen.promise;
    expect(state.mustWait()).toBe(false);
    proxy.refuse();
    lent.on('error', () => undefined);
    for (let drop = 0; drop < 2; drop++) await new Promise((closed) => lent.once('close', closed));
    proxy.welcome();
    await new Promise((ready) => lent.once('ready', ready));
    expect(state.mustWait()).toBe(true);
    state.stop();
    await lent.quit();
    await proxy.stop();
  });

  it.each([
    ['does not exist', { db: 99 }, /DB index is out of range.*There is no such database/],
    ['its user may not select', { db: 2, username: 'clerk', password: 'x' }, /NOPERM.*select.*lacks rights/],
  ])('a borrowed client acquires no lock when its database %s', async (_what, options, refusal) => {
    await redis.acl('SETUSER', 'clerk', 'on', '>x', '~*', '&*', '+@all', '-select');
    const lent = new Redis(server.url, { ...options, retryStrategy: () => 1 });
    lent.on('error', () => undefined);
    const elsewhereLocks = service(lent);
    await expect(elsewhereLocks.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching(refusal));
    const ready = new Promise((resolve) => lent.once('ready', resolve));
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await ready;
    await expect(elsewhereLocks.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching(refusal));
    expect(await redis.dbsize()).toBe(0);
    await redis.acl('SETUSER', 'clerk', '+select');
    if (options.db === 2) {
      const lock = await acquired(elsewhereLocks);
      expect(await locks.isLocked('a')).toBe(false);
      await lock.unlock();
    }
    await elsewhereLocks.close();
    lent.disconnect();
  });

  it.each([
    [
      'has a wrong password',
      () => ({ ...address(), username: 'clerk', password: 'no' }),
      /WRONGPASS.*Look at the user and the password/,
    ],
    ['finds nothing at its port', () => ({ port: 1 }), /ECONNREFUSED.*Check that it runs/],
  ])('a call says why, when a borrowed client %s and the app listens to its errors', async (_what, options, why) => {
    await redis.acl('SETUSER', 'clerk', 'on', '>x', '~*', '&*', '+@all');
    const lent = new Redis({ ...options(), retryStrategy: () => 50 });
    lent.on('error', () => undefined);
    const services = service(lent);
    await expect(services.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching(why));
    await services.close();
    lent.disconnect();
  });

  it('a borrowed client to whose errors nobody listens is left like that, because ioredis prints them then', () => {
    expect(client.listenerCount('error')).toBe(0);
  });

  it('a borrowed client that sends a call again in another database gets no lock by that', async () => {
    await redis.acl('SETUSER', 'clerk', 'on', '>x', '~*', '&*', '+@all');
    const proxy = await startProxy(address().port);
    const options = { port: proxy.port, db: 2, username: 'clerk', password: 'x', retryStrategy: () => 1 };
    const lent = new Redis({ ...options, enableReadyCheck: false, maxRetriesPerRequest: null });
    lent.on('error', () => undefined);
    const services = service(lent);
    await services.withLock('a', () => undefined);
    await redis.acl('SETUSER', 'clerk', '-select');
    proxy.dropReplies();
    const call = services.lock('b', { wait: 0 });
    await proxy.nextDroppedReply();
    proxy.heal();
    proxy.cut();
    await expect(call).rejects.toHaveProperty('detail', expect.stringMatching(/NOPERM.*select/));
    await services.close();
    lent.disconnect();
    await proxy.stop();
  });

  it('a borrowed client acquires no lock when the app has not got back to its database', async () => {
    await redis.acl('SETUSER', 'clerk', 'on', '>x', '~*', '&*', '+@all');
    const lent = new Redis(server.url, { username: 'clerk', password: 'x' });
    const services = service(lent);
    await services.withLock('a', () => undefined);
    await lent.select(3);
    await redis.acl('SETUSER', 'clerk', '-select');
    await expect(lent.select(0)).rejects.toThrow('NOPERM');
    await expect(services.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching(/NOPERM.*select/));
    await redis.acl('SETUSER', 'clerk', '+select');
    // An earlier call may have asked a moment ago.
    const lock = await acquired(services);
    expect(await redis.exists('lock:a')).toBe(1);
    await lock.unlock();
    await services.close();
    lent.disconnect();
  });

  it('a borrowed client that the app switches while a call is in flight stays in the database of the app', async () => {
    await locks.withLock('a', () => undefined);
    // The first call of a turn is sent at once.
    await turn();
    const call = locks.lock('a');
    await client.select(3);
    await client.set('of the app', 'x');
    await (await call).unlock().catch(() => undefined);
    await redis.select(3);
    expect(await redis.exists('of the app')).toBe(1);
    await redis.select(0);
    await client.select(1);
  });

  it('a borrowed client that the app switches, and back, while the server chooses its database locks at once', async () => {
    const switchAndBack = () => client.pipeline().select(3).get('of the app').select(1).exec();
    await switchAndBack();
    const select = client.select.bind(client);
    let switched: Promise<unknown> | undefined;
    jest.spyOn(client, 'select').mockImplementationOnce((database) => {
      const reply = select(database);
      switched = switchAndBack();
      return reply;
    });
    await (await locks.lock('a')).unlock();
    expect(await switched).toHaveLength(3);
  });

  it('a borrowed client with a shorter time-out of its own is asked again for its database', async () => {
    const proxy = await startProxy(server.port);
    const lent = new Redis(proxy.url, { db: 1, commandTimeout: 300 });
    const services = lockService(redisStore({ connection: lent }), { shutdownGrace: 0 });
    await services.withLock('a', () => undefined);
    await lent.pipeline().select(3).select(1).exec();
    const { replies } = proxy.wires[0]!;
    replies.hold();
    const select = jest.spyOn(lent, 'select');
    const call = services.lock('a');
    await replies.nextHeld();
    await expect(select.mock.results[0]!.value).rejects.toThrow('Command timed out');
    replies.release();
    await (await call).unlock();
    await services.close();
    lent.disconnect();
    await proxy.stop();
  });

  it('a borrowed client releases what was unlocked meanwhile when it is back in its database', async () => {
    const lock = await locks.lock('a', { lease: '30s' });
    await client.select(3);
    await lock.unlock();
    await client.select(1);
    await until(async () => (await client.exists('lock:a')) === 0);
  });

  it('a borrowed client that was switched to its database before returns to that on a new connection', async () => {
    await locks.close();
    await client.select(5);
    locks = service();
    await locks.withLock('a', async () => {
      expect(await client.exists('lock:a')).toBe(1);
      await redis.client('KILL', 'ID', await client.client('ID'));
      await until(() => locks.isLocked('a').catch(() => false));
    });
    expect(lines).toEqual([]);
  });

  it('a borrowed client that the app gives a new password is followed by the connections that the library adds', async () => {
    await redis.acl('SETUSER', 'app', 'on', '>one', '~*', '&*', '+@all');
    const lent = new Redis(server.url, { username: 'app', password: 'one' });
    const borrowing = service(lent);
    const subscription = async (): Promise<string | undefined> =>
      /\bid=(\d+) .*\bsub=1 .*\buser=app\b/.exec(String(await redis.client('LIST')))?.[1];
    await borrowing.lock('a');
    await until(async () => (await subscription()) !== undefined);
    const before = await subscription();
    await redis.acl('SETUSER', 'app', 'resetpass', '>two');
    lent.options.password = 'two';
    await redis.client('KILL', 'USER', 'app');
    await until(async () => ![undefined, before].includes(await subscription()));
    await borrowing.close();
    lent.disconnect();
    await redis.acl('DELUSER', 'app');
  });

  it('a borrowed client that the app gives a new certificate is followed by the connections that the library adds', () => {
    const lent = new Redis({ port: 1, lazyConnect: true, tls: { cert: 'old' } });
    const added = subscriberOf(borrowedClient(lent), 1000).on('error', () => undefined);
    lent.options.tls = { cert: 'new' };
    added.connect().catch(() => undefined);
    expect(added.options.tls).toEqual({ cert: 'new' });
    added.disconnect();
  });

  it('a borrowed cluster client that the app gives a new password is followed by the subscription', () => {
    const node = new Redis({ port: 1, lazyConnect: true, username: 'app', password: 'one' });
    const cluster = { nodes: () => [node], options: { redisOptions: { password: 'one' } } };
    const added = subscriberIn({ client: cluster as unknown as Cluster, lookForMasters: () => undefined }, 1000)!.on(
      'error',
      () => undefined,
    );
    cluster.options.redisOptions.password = 'two';
    added.connect().catch(() => undefined);
    expect(added.options).toMatchObject({ username: 'app', password: 'two' });
    added.disconnect();
  });

  it.each([
    [undefined, 30_000],
    [0, 30_000],
    [5_000, 5_000],
  ])(
    'beside a borrowed client with a keepAlive of %p, the library keeps its connections alive',
    (keepAlive, expected) => {
      const lent = new Redis({ port: 1, lazyConnect: true, keepAlive });
      expect(subscriberOf(borrowedClient(lent), 1000).options.keepAlive).toBe(expected);
    },
  );

  it.each(['quit', 'disconnect'] as const)(
    'a borrowed client that the app closes by `%s` leaves the locks to a connection of the library',
    async (close) => {
      const [first, second] = [await locks.lock('a', { lease: 600 }), await locks.lock('b')];
      await client[close]();
      await until(() => client.status === 'end');
      expect(await second.unlock()).toBe(true);
      const heldUntil = performance.now() + 1000;
      await until(() => performance.now() > heldUntil);
      expect(first.isHeld).toBe(true);
      await locks.withLock('c', async () => {
        await redis.select(1);
        expect(await redis.exists('lock:a', 'lock:b', 'lock:c')).toBe(2);
      });
      await locks.close();
      expect(await redis.exists('lock:a')).toBe(0);
      await redis.select(0);
    },
  );

  it('a borrowed client that the app closes while it waits to connect again leaves the locks to the library', async () => {
    const proxy = await startProxy(server.port);
    const lent = new Redis(proxy.url, { retryStrategy: () => 50 }).on('error', () => undefined);
    const other = service(lent);
    const lock = await other.lock('a');
    proxy.refuse();
    await until(() => lent.status === 'reconnecting');
    lent.disconnect();
    proxy.welcome();
    await other.withLock('b', () => undefined);
    expect(await lock.unlock()).toBe(true);
    await other.close();
    await proxy.stop();
  });

  it('a borrowed client that the app closes while a call is in flight fails no call', async () => {
    const calls = Array.from({ length: 20 }, (_, nth) => locks.lock(`call ${nth}`));
    client.disconnect();
    for (const lock of await Promise.all(calls)) expect(await lock.unlock()).toBe(true);
  });

  it('a borrowed client that ends at its first drop loses no lock whose release had run', async () => {
    const proxy = await startProxy(server.port);
    const ending = new Redis(proxy.url, { retryStrategy: () => null }).on('error', () => undefined);
    const other = service(ending);
    const released = other.withLock('a', () => {
      proxy.dropReplies();
      void proxy.nextDroppedReply().then(() => {
        proxy.heal();
        proxy.cut();
      });
      return 'done';
    });
    expect(await released).toBe('done');
    await other.close();
    await proxy.stop();
  });

  it('a borrowed client that sends a PING again while writes are paused is not taken for one that runs scripts', async () => {
    const log: string[] = [];
    const lent = new Redis(server.url, { socketTimeout: 300 }).on('error', () => undefined);
    const store = redisStore(
      { connection: lent, commandTimeout: 200 },
      { down: () => log.push('down'), up: () => log.push('up') },
    );
    const other = lockService(store, { shutdownGrace: 0 });
    await other.withLock('a', () => undefined);
    await redis.call('CLIENT', 'PAUSE', '60000', 'WRITE');
    let connections = 0;
    lent.on('ready', () => connections++);
    await until(async () => (await other.lock('b').catch(() => undefined), connections > 3));
    expect(log).toEqual(['down']);
    await redis.client('UNPAUSE');
    await until(() => other.withLock('b', () => true).catch(() => false));
    expect(log).toEqual(['down', 'up']);
    await other.close();
    lent.disconnect();
  }, 30_000);

  it('a borrowed client that gets replies again says so: what could not be given back meanwhile is', async () => {
    const proxy = await startProxy(address().port);
    const lent = new Redis(proxy.port);
    const ready = jest.fn();
    const connection = new RedisConnection(borrowedClient(lent), 200, SILENT, { ready, isSlow: () => undefined });
    await connection.command('PING');
    ready.mockClear();
    const { requests } = proxy.wires[0]!;
    requests.hold();
    // No other connection can be made, which would take its place.
    proxy.leadTo(1);
    await expect(connection.command('PING')).rejects.toThrow(LockUnavailableError);
    requests.release();
    await connection.command('PING');
    expect(connection.epoch).toBe(0);
    expect(ready).toHaveBeenCalledTimes(1);
    await connection.command('PING');
    expect(ready).toHaveBeenCalledTimes(1);
    connection.close();
    lent.disconnect();
    await proxy.stop();
  });

  it('a borrowed client whose server goes on as a replica after it hung says so to all callers', async () => {
    const old = await startRedis();
    const [admin, lent] = [new Redis(old.url), new Redis(old.url)];
    const other = service(lent);
    await other.withLock('a', () => undefined);
    process.kill(old.pid, 'SIGSTOP');
    const demoted = admin.replicaof('127.0.0.1', server.port);
    await expect(other.lock('b')).rejects.toHaveProperty('detail', expect.stringContaining('did not reply'));
    process.kill(old.pid, 'SIGCONT');
    await demoted;
    const detailOf = (key: string) => other.lock(key).then(String, ({ detail }: { detail: string }) => detail);
    await until(async () => (await detailOf('b')).includes('READONLY'));
    for (const detail of await Promise.all(['c', 'd', 'e'].map(detailOf))) expect(detail).toContain('READONLY');
    await other.close();
    admin.disconnect();
    lent.disconnect();
    await old.stop();
  });

  it('a borrowed client that connects when it is first used is left to the app until the first lock', async () => {
    const lent = new Redis(server.url, { lazyConnect: true });
    const store = redisStore({ connection: lent });
    store.open!();
    await redis.ping();
    expect(lent.status).toBe('wait');
    await lent.connect();
    lent.disconnect();
    await store.close();
  });

  it('a borrowed client may be wrapped by code that expects a promise of each command', async () => {
    const send = client.sendCommand.bind(client);
    let measured = 0;
    client.sendCommand = (command, stream) => {
      void command.promise.then(() => measured++);
      return send(command, stream);
    };
    await client.get('of the app');
    const both = await Promise.all([locks.lock('a'), locks.lock('b')]);
    for (const lock of both) expect(await lock.unlock()).toBe(true);
    expect(measured).toBeGreaterThan(3);

    client.sendCommand = () => {
      throw new TypeError('not today');
    };
    const refused = [locks.lock('a'), locks.lock('b')];
    for (const call of refused) await expect(call).rejects.toBeInstanceOf(LockUnavailableError);
  });

  it('a borrowed client in subscriber mode fails calls at once, where it can send nothing else', async () => {
    const subscriber = new Redis(server.url, { protocol: 2 });
    const here = service(subscriber);
    await here.isLocked('warm up');
    await subscriber.subscribe('news');
    await expect(here.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching('into subscriber mode'));
    await subscriber.unsubscribe('news');
    await here.withLock('a', () => undefined);
    await here.close();
    subscriber.disconnect();
  });

  it('a borrowed client grants nothing while its commands are queued for a transaction, nor by it', async () => {
    await client.multi({ pipeline: false });
    await expect(locks.lock('a')).rejects.toThrow(LockUnavailableError);
    await client.exec();
    await until(async () => (await client.exists('lock:a')) === 0);
    await locks.withLock('a', () => undefined);
  });

  it('a borrowed client lets no call wait for ever while the app has turned its replies off', async () => {
    client.call('CLIENT', 'REPLY', 'OFF').catch(() => undefined);
    await expect(locks.lock('a')).rejects.toThrow(LockUnavailableError);
  });

  it('a borrowed client reports what a replica refuses', async () => {
    await redis.replicaof('127.0.0.1', '1');
    try {
      await expect(locks.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching('It is a replica'));
    } finally {
      await redis.replicaof('NO', 'ONE');
    }
  });
});
