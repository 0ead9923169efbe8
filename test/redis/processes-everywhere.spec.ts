import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockStore } from 'nest-redis-lock';
import { until } from '../support/deferred.js';
import { keyAt, startCluster, type RedisCluster } from '../support/redis/redis-cluster.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { lockService, redisStore, trustingQuorum, type ClosableLockService } from '../support/stores/lock-services.js';

const STATE = { kind: 'state', about: null };

const services: ClosableLockService[] = [];

/** As in a process of its own, which answers. */
function answering(store: LockStore): ClosableLockService {
  const service = lockService(store, { shutdownGrace: 0 });
  services.push(service);
  service.onApplicationBootstrap();
  service.processes.on('state', () => services.indexOf(service));
  return service;
}

/** Resolves when the processes have subscribed. */
async function allAnswer(asker: ClosableLockService): Promise<void> {
  await until(async () => (await asker.processes.askAll(STATE)).bySource.size === services.length);
}

afterEach(() => Promise.all(services.splice(0).map((one) => one.close())));

describe('Questions to all processes of a cluster', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster();
  }, 30_000);

  afterAll(() => cluster.stop());

  it('the processes are found on all nodes, replicas too; and what no node answers for is named', async () => {
    // A client hears of a replica only when that has got something from its master.
    for (const [master, { redis }] of cluster.masters.entries()) await redis.set(`lock:${keyAt(master)}`, 'anything');
    for (const { redis } of [...cluster.masters, ...cluster.replicas])
      await until(async () => ((await redis.cluster('SLOTS')) as unknown[][]).every((range) => range.length === 4));
    for (let count = 0; count < 6; count++) {
      const client = cluster.client();
      await once(client, 'ready');
      answering(redisStore({ connection: client, commandTimeout: '2s' }));
    }
    const [asker] = services;
    await allAnswer(asker!);
    const { bySource, unreached } = await asker!.processes.askAll(STATE);
    expect([...bySource.values()].sort()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(unreached).toEqual([]);
    // On a master that became a replica, subscriptions stay.
    const onReplica = cluster.replicas[0]!.redis.duplicate();
    await onReplica.subscribe('{lock:}:wake:api-3:4711:abcdefghijklmnop');
    expect((await asker!.processes.find()).sources).toContain('api-3:4711:abcdefghijklmnop');
    onReplica.disconnect();
    await until(async () => (await asker!.processes.find()).sources.length === services.length);

    const { pid } = cluster.replicas[1]!;
    process.kill(pid, 'SIGSTOP');
    await until(() => /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')));
    const late = await asker!.processes.askAll(STATE);
    process.kill(pid, 'SIGCONT');
    expect(late.bySource.size).toBe(6);
    expect(late.unreached).toMatchObject([
      { what: 'server', name: `127.0.0.1:${cluster.replicas[1]!.port}`, reason: 'unavailable' },
    ]);
  }, 60_000);

  it('nodes that are down are named as such, also when the subscription has ended', async () => {
    let deaf = false;
    const client = cluster.client();
    await once(client, 'ready');
    const asker = answering(
      redisStore({ connection: client, commandTimeout: '500ms' }, { unsubscribed: () => void (deaf = true) }),
    );
    await until(async () => (await asker.processes.find()).unreached.length === 0);
    for (const { pid } of [...cluster.masters, ...cluster.replicas]) process.kill(pid, 'SIGKILL');
    await until(() => deaf);
    const { unreached } = await asker.processes.find();
    expect(new Set(unreached.map(({ reason }) => reason))).toEqual(new Set(['unavailable']));
  }, 60_000);
});

describe('Questions to all processes of a quorum', () => {
  let servers: RedisServer[];

  beforeEach(async () => {
    servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  });

  afterEach(() => Promise.all(servers.map((server) => server.stop())));

  it('each process answers once, over any node; and a node that is down is named', async () => {
    for (let count = 0; count < 3; count++)
      answering(
        trustingQuorum(
          servers.map(({ url }) => url),
          300,
        ),
      );
    const [asker] = services;
    await allAnswer(asker!);
    const { bySource, unreached } = await asker!.processes.askAll(STATE);
    expect([...bySource.values()].sort()).toEqual([0, 1, 2]);
    expect(unreached).toEqual([]);
    for (const server of servers.slice(0, 2)) {
      await server.stop();
      await allAnswer(asker!);
    }
    const left = await asker!.processes.askAll(STATE);
    expect(left.unreached.map(({ what, name }) => [what, name])).toEqual(
      servers.slice(0, 2).map(({ url }) => ['server', new URL(url).host]),
    );
    expect(await asker!.processes.ask('nobody:1:abcdefghijklmnop', STATE)).toBe('unavailable');
  }, 30_000);

  it('a node that is down is named as such, also when the subscription to it has ended', async () => {
    let deaf = 0;
    const connection = servers.map(({ url }) => url);
    const asker = answering(redisStore({ connection, commandTimeout: '300ms' }, { unsubscribed: () => void deaf++ }));
    await until(async () => (await asker.processes.find()).unreached.length === 0);
    await servers[0]!.stop();
    await until(() => deaf === 1);
    expect((await asker.list()).unreached).toMatchObject([
      { what: 'server', name: new URL(servers[0]!.url).host, reason: 'unavailable' },
    ]);
  }, 30_000);
});
