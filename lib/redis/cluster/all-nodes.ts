import type { Cluster, Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { waitFor } from '../../clock/wait-for.js';
import { askNode } from './ask-node.js';

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

  /**
   * Sends a command to the nodes that the client knows, and then to those that it has learned of meanwhile.
   *
   * @param take takes the reply of a node, or why there is none
   */
  async ask<Reply>(
    words: readonly string[],
    take: (node: Redis, asked: Promise<unknown>) => Promise<Reply>,
  ): Promise<readonly Reply[]> {
    const ask = (nodes: readonly Redis[]) =>
      Promise.all(nodes.map((node) => take(node, askNode(node, words, this.#timeoutMs))));
    const known = this.#cluster.nodes('all');
    const [replies] = await Promise.all([ask(known), this.#read()]);
    const learned = this.#cluster.nodes('all').filter((node) => !known.includes(node));
    return [...replies, ...(await ask(learned))];
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
