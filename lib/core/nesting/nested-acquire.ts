import { now } from '../../clock/deadline.js';
import type { Sharing } from '../../store/lock-store.js';
import type { Lease } from '../lease/lease.js';
import { Lock, type LockIssuer } from '../lock/lock.js';
import { abortedSignal, changedRequest, type LockRequest, type Refusal } from '../request/lock-request.js';
import { enterKeys, leaveKeys, type QueueOf } from '../waiting/local-turns.js';
import type { WaitTracker } from '../waiting/wait-tracker.js';
import { othersRead, sharedOtherwise } from './nesting-errors.js';

interface Surroundings {
  /** `host:pid` of this process, to name the holder. */
  readonly holder: string;
  readonly issuer: LockIssuer;
  readonly tracker: WaitTracker;
}

/**
 * Acquires keys that parent calls hold already. Asks the store nothing, and waits only for siblings: calls nested in
 * the same parent. Only a reader that wants to write asks the store whether it is alone.
 */
export class NestedAcquire {
  readonly #request: LockRequest;
  readonly #surroundings: Surroundings;
  /** The locks of the parent calls, each once. */
  readonly #parents: readonly Lock[];
  readonly #fence: number;
  readonly #queueOwner: (key: string) => Lock;
  readonly #queueOf: QueueOf<never> = (key) => this.#queueOwner(key).nesting.queue;
  /** The keys of which it has the turn. */
  #entered: readonly string[] = [];
  /** Leases of readers that write for it. */
  readonly #upgraded: Lease[] = [];

  /** @param parents for each key the innermost lock that holds it */
  constructor(parents: ReadonlyMap<string, Lock>, request: LockRequest, surroundings: Surroundings) {
    this.#request = request;
    this.#surroundings = surroundings;
    this.#parents = [...new Set(parents.values())];
    this.#fence = Math.max(...this.#parents.map(({ fence }) => fence));
    this.#queueOwner = (key) => parents.get(key)!.nesting.queueOwner(key);
  }

  /**
   * @returns `'parent-ended'` when a parent call ended meanwhile: the caller is nested in others then, or in none
   * @throws LockOptionsError when the lock of a parent does not allow what the call asks for
   * @throws LockUnavailableError, or the reason of a signal that aborts the wait
   */
  async run(): Promise<Lock | Refusal | 'parent-ended'> {
    this.#request.signal?.throwIfAborted();
    this.#checkSharing();
    const refusal = await this.#enter();
    if (refusal) return refusal;
    let fence = this.#fence;
    try {
      // Looks again after each wait: a parent that wrote may have become a reader meanwhile.
      for (let reader = this.#findReader(); reader; reader = this.#findReader())
        fence = Math.max(fence, await this.#upgrade(reader));
      abortedSignal(this.#request)?.throwIfAborted();
      // Every wait ends here: a lock is only made while all parents are held.
      if (!this.#isWithinParents) {
        this.#leave();
        return 'parent-ended';
      }
    } catch (error) {
      this.#leave();
      throw error;
    }
    return this.#createLock(fence);
  }

  /** @throws LockOptionsError */
  #checkSharing(): void {
    const { keys, sharing } = this.#request;
    for (const key of keys) {
      const held = this.#sharing(key);
      const isAllowed = held === 'exclusive' || held === sharing || (held === 'read' && sharing === 'exclusive');
      if (!isAllowed) throw sharedOtherwise(keys, sharing, held);
    }
  }

  get #isWithinParents(): boolean {
    return this.#parents.every((parent) => parent.isHeld);
  }

  #sharing(key: string): Sharing {
    return this.#queueOwner(key).nesting.sharing(key);
  }

  /** Whether it reads the key together with siblings. */
  #isShared(key: string): boolean {
    return this.#request.sharing === 'read' && this.#sharing(key) === 'read';
  }

  /** Takes the turns of the keys it does not share; and waits until no sibling writes those it shares. */
  async #enter(): Promise<Refusal | undefined> {
    const { keys, waitMs } = this.#request;
    const calledAt = now();
    const writtenBySibling = (key: string): boolean => this.#isShared(key) && this.#queueOf(key).isTaken(key);
    for (;;) {
      // Each time: a writer outside may have become a reader meanwhile.
      const own = keys.filter((key) => !this.#isShared(key));
      // Waits for siblings that write one by one, and holds no turn meanwhile: they may wait for this call.
      const written = keys.find(writtenBySibling);
      const entering = written === undefined ? own : [written];
      if (entering.length > 0) {
        const startedAt = now();
        const entry = changedRequest(this.#request, {
          keys: entering,
          leavesAtOnce: written !== undefined,
          waitMs: Math.max(0, calledAt + waitMs - startedAt),
        });
        const entered = await enterKeys(this.#queueOf, entry, { ...this.#surroundings, startedAt });
        if (entered !== 'turn') return { ...entered, keys, waitMs, waitedMs: now() - calledAt };
        this.#entered = entering;
      }
      if (!this.#isWithinParents) return undefined;
      if (written === undefined && !own.some((key) => this.#isShared(key)) && !keys.some(writtenBySibling)) break;
      leaveKeys(this.#queueOf, entering);
      this.#entered = [];
    }
    for (const key of this.#entered) this.#queueOf(key).setStage(key, 'inside');
    return undefined;
  }

  /** Finds a reader that it is nested in and has to make the writer, for a key that it has for itself. */
  #findReader(): Lock | undefined {
    if (!this.#isWithinParents) return undefined;
    const key = this.#entered.find(
      (key) =>
        this.#sharing(key) === 'read' &&
        !this.#isShared(key) &&
        !this.#upgraded.includes(this.#queueOwner(key).leases[0]!),
    );
    return key === undefined ? undefined : this.#queueOwner(key);
  }

  /**
   * Makes a reader that it is nested in the writer.
   *
   * @returns the fence of that; 0 when a parent call ended meanwhile
   * @throws LockOptionsError when others read too
   */
  async #upgrade(reader: Lock): Promise<number> {
    const [lease] = reader.leases as [Lease];
    const grant = this.#isAlone(reader) ? await this.#surroundings.issuer.changes.startWriting(lease) : undefined;
    if (grant) this.#upgraded.push(lease);
    else if (this.#isWithinParents) throw othersRead(reader);
    return grant?.fence ?? 0;
  }

  /** Whether the calls that this one is nested in are the only ones that read inside of the reader. */
  #isAlone(reader: Lock): boolean {
    return [...reader.nesting.readers].every((other) => this.#parents.some((parent) => parent.nesting.isWithin(other)));
  }

  #createLock(fence: number): Lock {
    const { keys, atLeastMs } = this.#request;
    // For good: the outermost call may become a reader when this lock has ended, but its work has not.
    const shared = new Set(keys.filter((key) => this.#isShared(key)));
    const readers = new Set([...shared].map(this.#queueOwner));
    const leases = [...new Set(this.#parents.flatMap((parent) => parent.leases))];
    for (const lease of leases) lease.keepFor(atLeastMs);
    const leave = (): void => {
      for (const reader of readers) reader.nesting.readers.delete(lock);
      this.#leave();
    };
    const lock: Lock = new Lock({
      keys,
      fence,
      leases,
      issuer: this.#surroundings.issuer,
      request: this.#request,
      nestedIn: { parents: this.#parents, shared, leave },
    });
    for (const reader of readers) reader.nesting.readers.add(lock);
    return lock;
  }

  /** Ends its upgrades, and gives its turns to siblings. */
  #leave(): void {
    for (const lease of this.#upgraded) this.#surroundings.issuer.changes.endWriting(lease);
    leaveKeys(this.#queueOf, this.#entered);
  }
}
