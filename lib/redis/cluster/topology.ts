import type { Cluster } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';

/** How often to say at most that the cluster has changed, in ms. */
const AT_MOST_EVERY_MS = 1000;

/** Watches a cluster client for anything after which locks or messages may have been lost. */
export class Topology {
  readonly #cluster: Cluster;
  readonly #tell: (reconnected: boolean) => void;
  #changes = 0;
  #masters = '';
  #wasReady: boolean;
  #pause: NodeJS.Timeout | undefined;
  #isDue = false;
  #isClosed = false;

  /** @param tell called when the cluster can be used (`reconnected`: it changed, or was away), once a second at most */
  constructor(cluster: Cluster, tell: (reconnected: boolean) => void) {
    this.#cluster = cluster;
    this.#tell = tell;
    this.#wasReady = cluster.status === 'ready';
    this.#masters = this.#nodesNow();
    cluster.on('ready', this.#becameReady);
    cluster.on('refresh', this.#refreshed);
    cluster.on('-node', this.#changed);
    cluster.on('close', this.#changed);
  }

  /** How often something changed. */
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

  /** Something may have changed. */
  announceChange(): void {
    if (this.#isClosed) return;
    if (this.#pause) {
      this.#isDue = true;
      return;
    }
    this.#pause = atRoot(() => setTimeout(() => this.#goOn(), AT_MOST_EVERY_MS).unref());
    this.#tell(true);
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
    this.#tell(false);
  };

  readonly #changed = (): void => {
    this.#changes++;
    if (this.#wasReady) this.announceChange();
  };

  /** The client has learnt anew who serves which slot. Whoever is master now may not have the last fences of the one before. */
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
