import type { Cluster } from 'ioredis';
import { ServerCheck } from '../connection/server-check.js';
import type { OnConnected, Transport, TransportOptions } from '../locks/transport.js';
import { ClusterConnection } from './cluster-connection.js';
import { ClusterNames } from './cluster-names.js';
import { subscriberIn } from './cluster-subscriber.js';
import { SlotBatches } from './slot-batches.js';

/** All that a store needs to talk to its Redis Cluster. */
export interface ClusterTransport extends Transport {
  readonly names: ClusterNames;
  readonly redis: ClusterConnection;
  readonly batch: SlotBatches;
}

/** Makes the transport to a Redis Cluster, through the app's client. */
export function connectToCluster(
  cluster: Cluster,
  { keyPrefix, commandTimeoutMs, log }: Omit<TransportOptions, 'connection'>,
): ClusterTransport {
  const names = new ClusterNames(keyPrefix);
  const connected: OnConnected[] = [];
  const onReady = (reconnected: boolean): void => {
    for (const callback of connected) callback(reconnected);
    void serverCheck.run();
  };
  const redis = new ClusterConnection(cluster, commandTimeoutMs, {
    log,
    onReady,
    slotOfKey: (key) => names.slot(key),
  });
  const serverCheck = new ServerCheck(redis, log);
  return {
    names,
    redis,
    renewals: redis,
    batch: new SlotBatches(redis, names),
    log,
    subscriber: () => subscriberIn(redis, commandTimeoutMs),
    open: () => {
      if (cluster.status === 'ready') void serverCheck.run();
    },
    onConnected: (callback) => void connected.push(callback),
    // A connection to a node is not replaced because the node is slow.
    onSlow: () => undefined,
  };
}
