import type { Cluster } from 'ioredis';
import type { Call } from '../connection/plain-call.js';
import { masterName, masterOf } from './masters.js';
import type { SilentNodes } from './silent-nodes.js';

/** Knows which slots may not be served: a call for one of them may take its whole time-out, and fail. */
export class Doubts {
  readonly #cluster: Cluster;
  readonly #silentNodes: SilentNodes;
  /** The slots whose last call got no reply in time, or may have got none. */
  readonly #lateSlots = new Set<number>();
  /** The masters that said last that they count the cluster as down. */
  readonly #refusing = new Set<string>();

  /** The questions about slots in doubt that are under way. */
  readonly #asked = new Map<number, Promise<unknown>>();

  constructor(cluster: Cluster, silentNodes: SilentNodes) {
    this.#cluster = cluster;
    this.#silentNodes = silentNodes;
  }

  /** Notes that a call for these slots got no reply in time. */
  late(slots: readonly (number | undefined)[]): void {
    for (const slot of slots) if (slot !== undefined) this.#lateSlots.add(slot);
  }

  /** Notes that a node refused a call, because it counts the cluster as down. */
  saidDown({ slot }: Call): void {
    const master = masterName(this.#cluster, slot);
    if (master !== undefined) this.#refusing.add(master);
  }

  /** Notes that a call got a reply. */
  replied({ slot }: Call): void {
    if (this.#lateSlots.size === 0 && this.#refusing.size === 0) return;
    this.#lateSlots.delete(slot!);
    this.#refusing.delete(masterName(this.#cluster, slot)!);
  }

  /**
   * Asks the master of a slot, if it is in doubt that the slot is served: once for all that want to know at the time.
   * Returns nothing otherwise.
   */
  settle(slot: number, ask: () => Promise<unknown>): Promise<unknown> | undefined {
    const asked = this.#asked.get(slot);
    if (asked || !this.#isInDoubt(slot)) return asked;
    const asking = ask().finally(() => this.#asked.delete(slot));
    this.#asked.set(slot, asking);
    return asking;
  }

  /**
   * Names the masters whose keys nobody gets: they say nothing, or count the cluster as down, or serve one of these
   * slots and have no connection.
   */
  nodesDown(slots: readonly (number | undefined)[]): ReadonlySet<string> {
    const unconnected = slots.filter((slot) => masterOf(this.#cluster, slot)?.status !== 'ready');
    const names = unconnected.map((slot) => masterName(this.#cluster, slot)).filter((name) => name !== undefined);
    return new Set([...this.#silentNodes.names(), ...this.#refusing, ...names]);
  }

  #isInDoubt(slot: number): boolean {
    const master = masterName(this.#cluster, slot);
    return master === undefined || this.#lateSlots.has(slot) || this.nodesDown([slot]).has(master);
  }
}
