import type { Cluster } from 'ioredis';
import { coverageOf, storeOutage } from '../../errors/store-outage.js';
import { mayBeOfItsKeys, RefusedError } from '../connection/connection-errors.js';
import { PlainCall, type Call } from '../connection/plain-call.js';
import { SLOTS } from './cluster-slot.js';
import { masterName, masterOf } from './masters.js';
import type { SilentNodes } from './silent-nodes.js';

/** How many slots to look at for one whose master is well. */
const TRIES = 32;

/** Knows which slots may not be served: a call for one of them may take its whole time-out, and fail. */
export class Doubts {
  readonly #cluster: Cluster;
  readonly #silentNodes: SilentNodes;
  /** The slots whose last call got no reply in time, or may have got none. */
  readonly #lateSlots = new Set<number>();
  /** The masters that said last that they count the cluster as down. */
  readonly #refusing = new Set<string>();
  /** The masters from which nothing has come since a message to them got no reply. */
  readonly #lateMasters = new Set<string>();
  /** The slot over which messages go. */
  #messageSlot: number | undefined;
  /** The questions about slots in doubt that are under way. */
  readonly #asked = new Map<number, Promise<unknown>>();

  constructor(cluster: Cluster, silentNodes: SilentNodes) {
    this.#cluster = cluster;
    this.#silentNodes = silentNodes;
  }

  /** Notes that a node refused a call, because it counts the cluster as down. */
  saidDown({ slot }: Call): void {
    const master = masterName(this.#cluster, slot);
    if (master !== undefined) this.#refusing.add(master);
  }

  /** Notes that a call got a reply. */
  replied(call: Call): void {
    if (this.#lateSlots.size === 0 && this.#refusing.size === 0 && this.#lateMasters.size === 0) return;
    const master = masterName(this.#cluster, call.slot)!;
    this.#lateMasters.delete(master);
    // A node passes messages on also when it refuses keys.
    if (call instanceof PlainCall) return;
    this.#lateSlots.delete(call.slot!);
    this.#refusing.delete(master);
  }

  /**
   * Asks the master of a slot, if it is in doubt that the slot is served: once for all that want to know at the time.
   * Returns nothing otherwise. That it refuses the key of one of them is an answer, too: the others have other keys.
   */
  settle(slot: number, ask: () => Promise<unknown>): Promise<unknown> | undefined {
    const asked = this.#asked.get(slot);
    if (asked || !this.#isInDoubt(slot)) return asked;
    const asking = ask()
      .catch((error: Error) => {
        if (!(error instanceof RefusedError && mayBeOfItsKeys(error))) throw error;
      })
      .finally(() => this.#asked.delete(slot));
    this.#asked.set(slot, asking);
    return asking;
  }

  /**
   * Notes in an error which keys nobody gets: all, while the client is not connected; or those of masters which are
   * down.
   *
   * @param slots those of which one got no reply in time
   * @param stuck a slot of which nobody gets the keys either
   */
  cover<Failure extends Error>(
    error: Failure,
    slots: readonly (number | undefined)[],
    slotOfKey: (key: string) => number,
    stuck: number | undefined,
  ): Failure {
    if (error instanceof RefusedError || coverageOf(error)) return error;
    for (const slot of slots) if (slot !== undefined) this.#lateSlots.add(slot);
    const cluster = this.#cluster;
    if (cluster.status !== 'ready') return storeOutage(error);
    const down = this.nodesDown(slots);
    if (down.size === 0 && stuck === undefined) return error;
    return storeOutage(error, (key) => {
      const slot = slotOfKey(key);
      return slot === stuck || down.has(masterName(cluster, slot)!);
    });
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

  /**
   * Finds a slot for a message, which any node passes on: of a master that is well, as far as that is known. It stays
   * the same as long as that lasts, because a node that hangs would swallow a message of each process. Undefined when
   * none is found.
   *
   * @param besides the node over which the message is not to go, if another one is well
   */
  slotForMessage(besides?: string): number | undefined {
    if (this.#messageSlot === undefined || !this.#passesOn(this.#messageSlot)) this.#messageSlot = this.#findSlot();
    if (besides === undefined || masterName(this.#cluster, this.#messageSlot) !== besides) return this.#messageSlot;
    return this.#findSlot(besides) ?? this.#messageSlot;
  }

  /** Notes that a message for a slot got no reply. */
  messageFailed(slot: number | undefined): void {
    const master = masterName(this.#cluster, slot);
    if (master !== undefined) this.#lateMasters.add(master);
  }

  #findSlot(besides?: string): number | undefined {
    const anySlots = Array.from({ length: TRIES }, () => Math.floor(Math.random() * SLOTS));
    const slots = anySlots.filter((slot) => besides === undefined || masterName(this.#cluster, slot) !== besides);
    return slots.find((slot) => this.#passesOn(slot)) ?? slots.find((slot) => this.#isUp(slot));
  }

  #passesOn(slot: number): boolean {
    return this.#isUp(slot) && !this.#lateMasters.has(masterName(this.#cluster, slot)!);
  }

  #isUp(slot: number): boolean {
    const master = masterName(this.#cluster, slot);
    return master !== undefined && !this.nodesDown([slot]).has(master);
  }

  #isInDoubt(slot: number): boolean {
    return !this.#isUp(slot) || this.#lateSlots.has(slot);
  }
}
