import { randomBytes } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { slotOf } from '../../../lib/redis/cluster/cluster-slot.js';
import { TestChild } from '../processes/child-process.js';
import { until } from '../deferred.js';
import { freePort } from '../free-port.mjs';

export interface ClusterNode {
  readonly id: string;
  readonly port: number;
  pid: number;
  /** For commands of the test itself. */
  readonly redis: Redis;
}

export interface RedisCluster {
  /** Three masters; `replicas[i]` is that of `masters[i]`. As they were at first. */
  readonly masters: readonly ClusterNode[];
  readonly replicas: readonly ClusterNode[];
  /** A client of its own, as an app has one; closed by `stop()` at the latest. */
  client(): Cluster;
  /** Empties it. */
  flush(): Promise<void>;
  /** Starts a node again that was killed; resolves when it has caught up with who is the master of its slots now. */
  restart(node: ClusterNode): Promise<void>;
  stop(): Promise<void>;
}

const MASTERS = 3;
const SLOTS = 16384;

/** How far the port of the bus is behind the other: Redis 6 knows no other place for it. */
const BUS_DISTANCE = 10_000;

/**
 * Starts a real cluster of three masters with a replica each. What was agreed on in a real one is written down for them
 * before.
 */
export async function startCluster(): Promise<RedisCluster> {
  const plans: Plan[] = [];
  while (plans.length < 2 * MASTERS) {
    const port = await freePort(BUS_DISTANCE);
    if (plans.every((plan) => plan.port !== port)) plans.push({ id: randomBytes(20).toString('hex'), port });
  }
  const child = new TestChild('cluster-nodes.mjs');
  child.send(plans.map(({ port }, self) => ({ port, config: nodesConf(plans, self) })));
  const pids = await child.message<number[]>();

  const nodes = plans.map(({ id, port }, index): ClusterNode => ({
    id,
    port,
    pid: pids[index]!,
    redis: new Redis(port, { retryStrategy: () => 100, maxRetriesPerRequest: null }).on('error', () => undefined),
  }));
  const masters = nodes.slice(0, MASTERS);
  await until(async () => (await Promise.all(nodes.map(isReady))).every(Boolean), 20_000);

  const clients: Cluster[] = [];
  return {
    masters,
    replicas: nodes.slice(MASTERS),
    client: () => {
      const client = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
      client.on('error', () => undefined);
      clients.push(client);
      return client;
    },
    flush: async () => void (await Promise.all(masters.map(({ redis }) => redis.flushall()))),
    restart: async (node) => {
      child.send(node.port);
      [node.pid] = await child.message<[number]>();
      await until(async () => (await Promise.all(nodes.map(isReady))).every(Boolean), 30_000);
    },
    stop: async () => {
      for (const client of clients) client.disconnect();
      for (const { redis } of nodes) redis.disconnect();
      const exited = child.exit();
      child.process.disconnect();
      await exited;
    },
  };
}

/** Starts one in which no replica takes over by itself. */
export async function startClusterWithoutFailovers(): Promise<RedisCluster> {
  const cluster = await startCluster();
  const nodes = [...cluster.masters, ...cluster.replicas];
  await Promise.all(nodes.map(({ redis }) => redis.config('SET', 'cluster-node-timeout', 60_000)));
  return cluster;
}

async function isReady({ redis }: ClusterNode): Promise<boolean> {
  const [state, replication] = await Promise.all([redis.cluster('INFO'), redis.info('replication')]);
  const isSynced = replication.includes('role:master')
    ? /connected_slaves:1/.test(replication) && /state=online/.test(replication)
    : /master_link_status:up/.test(replication);
  return String(state).includes('cluster_state:ok') && isSynced;
}

interface Plan {
  readonly id: string;
  readonly port: number;
}

/** What a node has in its `nodes.conf`. */
function nodesConf(plans: readonly Plan[], self: number): string {
  const lines = plans.map(({ id, port }, index) => {
    const mine = index === self ? 'myself,' : '';
    const address = `${id} 127.0.0.1:${port}@${port + BUS_DISTANCE}`;
    if (index >= MASTERS)
      return `${address} ${mine}slave ${plans[index - MASTERS]!.id} 0 0 ${index - MASTERS + 1} connected`;
    const from = Math.ceil((SLOTS * index) / MASTERS);
    const to = Math.ceil((SLOTS * (index + 1)) / MASTERS) - 1;
    return `${address} ${mine}master - 0 0 ${index + 1} connected ${from}-${to}`;
  });
  return `${lines.join('\n')}\nvars currentEpoch ${MASTERS} lastVoteEpoch 0\n`;
}

/** Which master has a slot at first. */
export const masterAt = (slot: number): number => Math.floor((slot * MASTERS) / SLOTS);

/** A hash tag that lies in a slot of this master, as they were at first. */
export function tagAt(master: number): string {
  for (let number = 0; ; number++) if (masterAt(slotOf(`${number}`)) === master) return `{${number}}`;
}

/** The nth key that lies in a slot of this master, as they were at first; no two in one slot. */
export function keyAt(master: number, nth = 0): string {
  const slots = new Set<number>();
  for (let number = 0; ; number++) {
    const key = `${'cba'[master]}${number}`;
    const slot = slotOf(`lock:${key}`);
    if (masterAt(slot) === master) slots.add(slot);
    if (slots.size > nth) return key;
  }
}
