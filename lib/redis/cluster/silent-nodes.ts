import type { Cluster, Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import type { Call } from '../connection/plain-call.js';
import { masterOf, nodeName } from './masters.js';

/** What was seen of the connection to a node before a command was sent to it. */
interface Sighting {
  readonly stream: Redis['stream'] | undefined;
  readonly bytesRead: number | undefined;
  readonly at: number;
}

/**
 * Lets calls fail fast while their node hangs with its connection open: the client keeps each command until it gets a
 * reply. A node is silent once a call to it got no reply in time, and nothing at all has been read from it since. That
 * counts bytes and not replies, because a call whose slot is being moved gets no reply from a node that is well.
 * Meanwhile one call in each command time-out may be sent, as a probe.
 */
export class SilentNodes {
  readonly #cluster: Cluster;
  readonly #timeoutMs: number;
  readonly #ended: () => void;
  /** Of each node: what was seen before the first command since something was read. */
  readonly #sightings = new WeakMap<Redis, Sighting>();
  /** The silent nodes, and when the next probe of each may be sent. */
  readonly #probeAt = new Map<Redis, number>();

  /** @param ended called when a node that was silent is not silent any more */
  constructor(cluster: Cluster, timeoutMs: number, ended: () => void) {
    this.#cluster = cluster;
    this.#timeoutMs = timeoutMs;
    this.#ended = ended;
  }

  /** Notes that a call is about to be sent. Returns the name of its node when it must not be. */
  beforeSending({ slot }: Call): string | undefined {
    const node = masterOf(this.#cluster, slot);
    if (!node || this.#cluster.status !== 'ready') return undefined;
    const time = now();
    if (!this.#isUnchanged(node)) {
      this.#sightings.set(node, { stream: node.stream, bytesRead: node.stream?.bytesRead, at: time });
      if (this.#probeAt.delete(node)) this.#ended();
      return undefined;
    }
    const probeAt = this.#probeAt.get(node);
    if (probeAt === undefined) return undefined;
    if (time < probeAt) return nodeName(node);
    this.#probeAt.set(node, time + this.#timeoutMs);
    return undefined;
  }

  /** Names the silent nodes. */
  names(): string[] {
    return [...this.#probeAt.keys()].map(nodeName);
  }

  /** Notes that a call got no reply in time. Returns its node when that is silent. */
  expired({ slot, startedAt }: Call): Redis | undefined {
    const node = masterOf(this.#cluster, slot);
    if (!node || !this.#isUnchanged(node)) return undefined;
    if (!this.#probeAt.has(node) && this.#sightings.get(node)!.at <= startedAt) this.#probeAt.set(node, now());
    return this.#probeAt.has(node) ? node : undefined;
  }

  /** Looks which nodes are not silent any more, because some node replied. */
  look(): void {
    for (const node of this.#probeAt.keys()) {
      if (this.#isUnchanged(node)) continue;
      this.#probeAt.delete(node);
      this.#ended();
    }
  }

  /** Whether a node has the connection of its sighting still, and nothing has been read from it since. */
  #isUnchanged(node: Redis): boolean {
    const sighting = this.#sightings.get(node);
    const stream = node.stream as Redis['stream'] | undefined;
    if (!sighting || stream?.destroyed) return false;
    return sighting.stream === stream && sighting.bytesRead === stream?.bytesRead;
  }
}
