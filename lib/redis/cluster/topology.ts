import type { Cluster } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';

/** The shortest time between two announcements of a change, in ms. */
const ANNOUNCE_EVERY_MS = 1000;

/** Watches a cluster client for events after which locks or messages may have been lost. */
export class Topology {
  readonly #cluster: Cluster;
  readonly #announce: (reconnected: boolean) => void;
  #changes = 0;
  #masters = '';
  #wasReady: boolean;
  #pause: NodeJS.Timeout | undefined;
  #isDue = false;
  #isClosed = false;

  /**
   * @param announce called when the cluster can be used (`reconnected`: it changed, or was away), at most once a
   * second
   */
  constructor(cluster: Cluster, announce: (reconnected: boolean) => void) {
    this.#cluster = cluster;
    this.#announce = announce;
    this.#wasReady = cluster.status === 'ready';
    this.#masters = this.#nodesNow();
    cluster.on('ready', this.#becameReady);
    cluster.on('refresh', this.#refreshed);
    cluster.on('-node', this.#changed);
    cluster.on('close', this.#changed);
  }

  /** Counts the changes. */
  get changes(): number {
    return this.#changes;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#pause);
    this.#cluster.off('ready', this.#becameReady);
    this.#cluster.off('refresh', this.#refreshed);
    this.#cluster.off('-node', this.#changed);
    this.#cluster.off('close', this.#changed);
  }

  /** Announces that something may have changed: now, or as soon as the last announcement is a while ago. */
  announceChange(): void {
    if (this.#isClosed) return;
    if (this.#pause) {
      this.#isDue = true;
      return;
    }
    this.#pause = atRoot(() => setTimeout(() => this.#goOn(), ANNOUNCE_EVERY_MS).unref());
    this.#announce(true);
  }

  #goOn(): void {
    this.#pause = undefined;
    if (!this.#isDue) return;
    this.#isDue = false;
    this.announceChange();
  }

  readonly #becameReady = (): void => {
    if (this.#wasReady) return this.#changed();
    this.#wasReady = true;
    this.#announce(false);
  };

  readonly #changed = (): void => {
    this.#changes++;
    if (this.#wasReady) this.announceChange();
  };

  /**
   * The client has read anew which node serves which slot. A new master may not have the last fences of the one
   * before.
   */
  readonly #refreshed = (): void => {
    this.#changes++;
    const masters = this.#nodesNow();
    if (masters === this.#masters) return;
    this.#masters = masters;
    if (this.#wasReady) this.announceChange();
  };

  #nodesNow(): string {
    const names = this.#cluster.nodes('master').map(({ options: { host, port } }) => `${host}:${port}`);
    return names.sort().join(' ');
  }
}
