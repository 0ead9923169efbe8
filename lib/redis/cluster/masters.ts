import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis';

/** Names a node as the client does. */
export const nodeName = ({ options: { host, port } }: Redis): string => `${host}:${port}`;

/** Names the master that serves a slot. Undefined without a slot, and where the client does not know it. */
export const masterName = (cluster: Cluster, slot: number | undefined): string | undefined =>
  slot === undefined ? undefined : cluster.slots[slot]?.[0];

/** Finds the master to which the client sends calls of a slot. */
export function masterOf(cluster: Cluster, slot: number | undefined): Redis | undefined {
  const name = masterName(cluster, slot);
  return name === undefined ? undefined : cluster.nodes('master').find((node) => nodeName(node) === name);
}

/** What ioredis 5 and 6 know of a cluster client, but leave out of their types. */
interface Insides {
  startupNodes: readonly ClusterNode[];
  readonly connectionPool: { findOrCreate(node: RedisOptions): Redis };
  natMapper(name: string): RedisOptions;
}

const insidesOf = (cluster: Cluster): Insides => cluster as unknown as Insides;

/** Finds the node that an ASK names: the client may not know it yet, as long as it serves no slot. */
export function nodeToAsk(cluster: Cluster, redirect: string): Redis {
  const insides = insidesOf(cluster);
  return insides.connectionPool.findOrCreate(insides.natMapper(redirect.split(' ')[2]!));
}

/** Names all nodes that serve slots, as the client knew them last, also after its end. */
export const knownNames = (cluster: Cluster): string[] => [...new Set(cluster.slots.flat())];

/** Tells where a node of this name is. */
export function placeOf(name: string): { readonly host: string; readonly port: number } {
  const colon = name.lastIndexOf(':');
  return { host: name.slice(0, colon), port: Number(name.slice(colon + 1)) };
}

/**
 * Gives a client of our own the credentials that the app has given to a node that it names, and not to its client. The
 * options of that are shared otherwise: the app may change the password in them.
 */
export function withCredentials(cluster: Cluster): ClusterOptions {
  const credentials = nodesOfApp(cluster).map(credentialsOf).find(Boolean);
  return credentials ? { redisOptions: { ...cluster.options.redisOptions, ...credentials } } : {};
}

/** The nodes that the app has named, by clients of our own. */
const namedNodes = new WeakMap<Cluster, readonly ClusterNode[]>();

/** Lists the nodes that the app has named: for its client, or for the one in whose place a client of ours has come. */
const nodesOfApp = (cluster: Cluster): readonly ClusterNode[] =>
  namedNodes.get(cluster) ?? insidesOf(cluster).startupNodes;

/**
 * Lets a client of our own look for the nodes that the app names, too, when its first connections are over: those that
 * it began with may all be gone by then.
 */
export function laterWithNodesOf(cluster: Cluster, own: Cluster): void {
  const named = nodesOfApp(cluster);
  namedNodes.set(own, named);
  own.once('close', () => {
    insidesOf(own).startupNodes = [...insidesOf(own).startupNodes, ...named];
  });
}

function credentialsOf(node: ClusterNode): Pick<RedisOptions, 'username' | 'password' | 'tls'> | undefined {
  if (typeof node === 'number') return undefined;
  if (typeof node === 'object') {
    const { username, password, tls } = node as RedisOptions;
    if (!password && !tls) return undefined;
    return { ...(username && { username }), ...(password && { password }), ...(tls && { tls }) };
  }
  if (!URL.canParse(node)) return undefined;
  const { username, password, protocol } = new URL(node);
  const isSecure = protocol === 'rediss:';
  if (!password && !isSecure) return undefined;
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(isSecure && { tls: {} }),
  };
}
