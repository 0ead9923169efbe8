import type { Cluster, Redis } from 'ioredis';
import { lettingOneHang } from '../connection/client-defaults.js';
import { laterWithNodesOf, nodeName, placeOf, withCredentials } from './masters.js';

/**
 * Makes a client of our own in place of the app's. It connects when it is told to.
 *
 * @param names the nodes from which it reads the slots at first
 * @param perNodeMs how long to wait for the slots from one node at first, in ms
 */
export function ownCluster(cluster: Cluster, names: readonly string[], perNodeMs: number): Cluster {
  const own = cluster.duplicate(names.map(placeOf), { lazyConnect: true, ...withCredentials(cluster) });
  laterWithNodesOf(cluster, own);
  return lettingOneHang(own, perNodeMs).on('error', () => undefined);
}

/** Finds a node, and lets all masters connect meanwhile. Far away, that takes longer than a call may. */
export function connecting(cluster: Cluster, name: string): Redis | undefined {
  for (const master of cluster.nodes('master')) master.connect().catch(() => undefined);
  return cluster.nodes('all').find((node) => nodeName(node) === name);
}
