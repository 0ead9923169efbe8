import { LockBatch, type LockOperation } from '../lock-batch.js';
import type { Connection } from '../redis-connection.js';
import { clusterLocks } from '../scripts/locks.script.js';
import type { ClusterNames } from './cluster-names.js';

/** Collects the operations of one tick by slot: a call of a script may touch only one. */
export class SlotBatches {
  readonly #redis: Connection;
  readonly #names: ClusterNames;
  readonly #script: ReturnType<typeof clusterLocks>;
  readonly #bySlot: (LockBatch | undefined)[] = [];

  constructor(redis: Connection, names: ClusterNames) {
    this.#redis = redis;
    this.#names = names;
    this.#script = clusterLocks(names.wakeChannel(''));
  }

  /** All its keys lie in one slot. */
  add(operation: LockOperation): void {
    this.#of(this.#names.slot(operation.lock.keys[0]!)).add(operation);
  }

  /**
   * Lifts the note of the last fence in a slot to this one at least.
   *
   * @throws LockUnavailableError
   */
  raise(slot: number, fence: number): Promise<unknown> {
    return new Promise((resolve, reject) => this.#of(slot).add({ verb: 'raise', lock: { keys: [], token: String(fence), leaseMs: 0 }, done: resolve, failed: reject }));
  }

  #of(slot: number): LockBatch {
    return (this.#bySlot[slot] ??= new LockBatch(this.#redis, this.#names, { note: this.#names.fenceIn(slot), script: this.#script, slot }));
  }
}
