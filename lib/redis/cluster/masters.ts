import type { Cluster, Redis } from 'ioredis';

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

/** Lists all nodes that serve slots, as the client knew them last, also after its end. */
export function knownNodes(cluster: Cluster): { host: string; port: number }[] {
  const names = [...new Set(cluster.slots.flat())];
  return names.map((name) => {
    const colon = name.lastIndexOf(':');
    return { host: name.slice(0, colon), port: Number(name.slice(colon + 1)) };
  });
}
