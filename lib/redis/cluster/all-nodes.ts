import type { Cluster, Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { waitFor } from '../../clock/wait-for.js';

/** How old may be what the client knows of the nodes, in ms: to read it anew takes a connection of its own. */
const FRESH_MS = 5_000;

/**
 * Asks all nodes of a cluster. The client learns of a node only when it reads the slots, which it does when a node
 * redirects it: one that came back as a replica may stay unknown for long.
 */
export class AllNodes {
  readonly #cluster: Cluster;
  readonly #timeoutMs: number;
  #readAt = -Infinity;

  constructor(cluster: Cluster, timeoutMs: number) {
    this.#cluster = cluster;
    this.#timeoutMs = timeoutMs;
  }

  /** Asks the nodes that the client knows, and then those that it has learned of meanwhile. */
  async ask<Reply>(question: (node: Redis) => Promise<Reply>): Promise<readonly Reply[]> {
    const known = this.#cluster.nodes('all');
    const [replies] = await Promise.all([Promise.all(known.map(question)), this.#read()]);
    const learned = this.#cluster.nodes('all').filter((node) => !known.includes(node));
    return [...replies, ...(await Promise.all(learned.map(question)))];
  }

  async #read(): Promise<void> {
    if (this.#cluster.status !== 'ready' || now() < this.#readAt + FRESH_MS) return;
    this.#readAt = now();
    await waitFor<void>(
      now() + this.#timeoutMs,
      [],
      (done) => atRoot(() => this.#cluster.refreshSlotsCache(() => done())),
      () => undefined,
    );
  }
}
