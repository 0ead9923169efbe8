import type { Cluster } from 'ioredis';

/** Neither lasts when the client connects again by itself. */
const CLOSING = new Set<Cluster['status']>(['disconnecting', 'close']);

/** Knows whether a client has been closed. Its status does not tell: ioredis may set it to "close" after the end. */
export class ClientEnd {
  readonly #cluster: Cluster;
  readonly #onEnd: () => void;
  #hasEnded: boolean;
  /** Whether it was closing at the last look. */
  #wasClosing = false;

  /** @param onEnd called when it has ended, and does not connect again at once */
  constructor(cluster: Cluster, onEnd: () => void) {
    this.#cluster = cluster;
    this.#onEnd = onEnd;
    this.#hasEnded = cluster.status === 'end';
    cluster.on('end', this.#ended);
    cluster.on('connecting', this.#connecting);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Looks once more, some time after the last look: whether it has ended, or is about to. Who closes a client waits
   * for all nodes, also for one that hangs; and a client may have been closed before this began to listen. To reconnect
   * takes less than two looks.
   */
  look(): boolean {
    const isClosing = CLOSING.has(this.#cluster.status);
    const isOver = this.#hasEnded || (isClosing && this.#wasClosing);
    this.#wasClosing = isClosing;
    return isOver;
  }

  close(): void {
    this.#cluster.off('end', this.#ended);
    this.#cluster.off('connecting', this.#connecting);
  }

  readonly #ended = (): void => {
    this.#hasEnded = true;
    // The app may connect it again when it hears of the end: then `connecting` comes first.
    setImmediate(() => {
      if (this.#hasEnded) this.#onEnd();
    });
  };

  readonly #connecting = (): void => {
    this.#hasEnded = false;
  };
}
