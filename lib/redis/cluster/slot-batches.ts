import { LockBatch } from '../locks/lock-batch.js';
import type { LockOperation } from '../locks/lock-operation.js';
import type { Operations } from '../locks/transport.js';
import type { Connection } from '../connection/connection.js';
import { locksInCluster } from '../lua/locks.script.js';
import type { ClusterNames } from './cluster-names.js';

/** Collects the operations of one tick by slot: a call of a script may touch only one. */
export class SlotBatches implements Operations {
  readonly #redis: Connection;
  readonly #names: ClusterNames;
  readonly #script: ReturnType<typeof locksInCluster>;
  readonly #bySlot: (LockBatch | undefined)[] = [];

  constructor(redis: Connection, names: ClusterNames) {
    this.#redis = redis;
    this.#names = names;
    this.#script = locksInCluster(names.wakeChannel(''));
  }

  /** Adds an operation whose keys all lie in one slot. */
  add(operation: LockOperation): void {
    this.#of(this.#names.slot(operation.lock.keys[0]!)).add(operation);
  }

  /**
   * Makes every later fence of a slot larger than this one. Resolves when the server knows.
   *
   * @throws LockUnavailableError
   */
  raiseIn(slot: number, fence: number): Promise<unknown> {
    const batch = this.#of(slot);
    batch.raise(fence);
    // An operation without keys, to carry it.
    return new Promise((done, failed) =>
      batch.add({ verb: 'cancel', lock: { keys: [], token: '', leaseMs: 0 }, done, failed }),
    );
  }

  /** Makes every later fence larger than this one, in all slots that are in use. */
  raise(fence: number): void {
    for (const batch of this.#bySlot) batch?.raise(fence);
  }

  close(): void {
    for (const batch of this.#bySlot) batch?.close();
  }

  #of(slot: number): LockBatch {
    return (this.#bySlot[slot] ??= new LockBatch(this.#redis, this.#names, {
      fenceCounter: this.#names.fenceIn(slot),
      absent: this.#names.absentIn(slot),
      script: this.#script,
      slot,
      isNode: false,
    }));
  }
}
