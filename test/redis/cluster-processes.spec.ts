import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';
import { once } from 'node:events';
import { until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { keyAt, startCluster, type ClusterNode, type RedisCluster } from '../support/redis/redis-cluster.js';

const COMMAND_TIMEOUT_MS = 1000;

describe('A search for processes on a Redis Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let store: ReturnType<typeof redisStore>;
  let locks: ClosableLockService;
  let deserted: string[];
  /** The subscriber of a process that listens on one node. */
  let ears: Redis | undefined;

  beforeEach(async () => {
    cluster = await startCluster();
    client = cluster.client();
    deserted = [];
    store = redisStore(
      { connection: client, commandTimeout: COMMAND_TIMEOUT_MS },
      { deserted: (name) => deserted.push(name) },
    );
    locks = lockService(store, { shutdownGrace: 0 });
    await locks.withLock(keyAt(1), () => undefined);
  }, 30_000);

  afterEach(async () => {
    ears?.disconnect();
    ears = undefined;
    await locks.close();
    await cluster.stop();
  });

  const find = () => store.findProcesses!();
  const known = ({ port }: ClusterNode) => client.nodes('all').find(({ options }) => options.port === port);
  const refreshed = () => new Promise<void>((done) => client.refreshSlotsCache(() => done()));

  /** Waits until the client knows a node: the others tell of a replica when they know how much of the data it has. */
  const isKnown = (node: ClusterNode) =>
    until(async () => known(node) !== undefined || (await refreshed(), false), 20_000);

  async function somebodyListensOn({ redis }: ClusterNode): Promise<void> {
    ears = redis.duplicate();
    await ears.subscribe('{lock:}:wake:somebody');
  }

  it('finds them also on a node that the client does not know yet', async () => {
    const [replica] = cluster.replicas as [ClusterNode];
    process.kill(replica.pid, 'SIGKILL');
    await until(async () => (await refreshed(), known(replica) === undefined), 20_000);
    await cluster.restart(replica);
    const nodes = [...cluster.masters, ...cluster.replicas];
    const listed = async ({ redis }: ClusterNode) =>
      JSON.stringify(await redis.cluster('SLOTS')).includes(`${replica.port}`);
    await until(async () => (await Promise.all(nodes.map(listed))).every(Boolean));
    expect(known(replica)).toBeUndefined();
    await somebodyListensOn(replica);
    const { sources, unreached } = await find();
    expect([sources.includes('somebody'), unreached]).toEqual([true, []]);
  }, 70_000);

  it('finds them also on a node that the client drops meanwhile; of one that is down, it says why', async () => {
    const [replica] = cluster.replicas as [ClusterNode];
    await somebodyListensOn(replica);
    const drop = async () => {
      await isKnown(replica);
      const found = find();
      known(replica)!.disconnect();
      return await found;
    };
    const { sources, unreached } = await drop();
    expect([sources.includes('somebody'), unreached]).toEqual([true, []]);
    process.kill(replica.pid, 'SIGKILL');
    expect((await drop()).unreached).toMatchObject([
      { name: `127.0.0.1:${replica.port}`, message: expect.stringMatching(/ECONNREFUSED.*Check that it runs/) },
    ]);
  }, 60_000);

  it('finds them also on a node that the client has just lost', async () => {
    const master = cluster.masters[1]!;
    await somebodyListensOn(master);
    expect((await find()).sources).toContain('somebody');
    const lost = once(client, '-node');
    await master.redis.call('CLIENT', 'KILL', 'TYPE', 'normal');
    await lost;
    expect((await find()).sources).toContain('somebody');
  }, 20_000);

  it('does not make the client look dead when a node that was down comes back', async () => {
    const [replica] = cluster.replicas as [ClusterNode];
    await isKnown(replica);
    process.kill(replica.pid, 'SIGKILL');
    await until(async () => (await find()).unreached.some(({ name }) => name === `127.0.0.1:${replica.port}`));
    await cluster.restart(replica);
    // Whoever asks whether only a connection is dead gets a reply now.
    await sleep(2 * COMMAND_TIMEOUT_MS);
    expect(deserted).toEqual([]);
  }, 60_000);

  it('does not connect the client of the app again', async () => {
    // The status does not tell: ioredis may set it to "close" after the end.
    const ended = once(client, 'end');
    client.disconnect();
    await ended;
    expect((await find()).unreached).toEqual([]);
    await locks.close();
    await find();
    expect(['end', 'close']).toContain(client.status);
  }, 20_000);
});
