import type { Cluster, Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { waitFor } from '../../clock/wait-for.js';
import { askNode } from './ask-node.js';
import { knownNames, nodeName } from './masters.js';

/** How old may be what the client knows of the nodes, in ms: to read it anew takes a connection of its own. */
const FRESH_MS = 5_000;

/** Sends the command to the node, unless `throwIfLate` throws before. */
type Ask = (throwIfLate: () => void) => Promise<unknown>;

/**
 * Asks all nodes of a cluster. The client learns of a node only when it reads the slots, which it does when a node
 * redirects it: one that came back as a replica may stay unknown for long. And it forgets one whose connection ends.
 */
export class AllNodes {
  readonly #cluster: Cluster;
  readonly #timeoutMs: number;
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(cluster: Cluster, timeoutMs: number) {
    this.#cluster = cluster;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Sends a command to the nodes that the client knows, and then to those that it has learned of meanwhile.
   *
   * @param take lets a node be asked, and takes its reply
   */
  async ask<Reply>(
    words: readonly string[],
    take: (node: Redis, ask: Ask) => Promise<Reply>,
  ): Promise<readonly Reply[]> {
    const askAll = (nodes: readonly Redis[]) =>
      Promise.all(nodes.map((node) => take(node, (throwIfLate) => askNode(node, words, this.#timeoutMs, throwIfLate))));
    const known = this.#cluster.nodes('all');
    const [replies] = await Promise.all([askAll(known), this.#read()]);
    const learned = this.#cluster.nodes('all').filter((node) => !known.includes(node));
    return [...replies, ...(await askAll(learned))];
  }

  #read(): Promise<void> | undefined {
    if (this.#cluster.status !== 'ready' || this.#isFresh()) return undefined;
    return (this.#reading ??= this.#readNow().finally(() => (this.#reading = undefined)));
  }

  #isFresh(): boolean {
    const names = new Set(this.#cluster.nodes('all').map(nodeName));
    return now() < this.#readAt + FRESH_MS && knownNames(this.#cluster).every((name) => names.has(name));
  }

  async #readNow(): Promise<void> {
    await waitFor<void>(
      now() + this.#timeoutMs,
      [],
      (done) =>
        atRoot(() =>
          this.#cluster.refreshSlotsCache((error) => {
            if (!error) this.#readAt = now();
            done();
          }),
        ),
      () => undefined,
    );
  }
}
