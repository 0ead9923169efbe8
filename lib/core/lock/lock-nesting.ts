import type { ForcedUnlock, LostReason } from '../../errors/lock-lost.error.js';
import type { Sharing } from '../../store/lock-store.js';
import { LocalQueue } from '../waiting/local-queue.js';

/** What nesting needs to know of a lock. */
interface NestedLock<Self extends NestedLock<Self>> {
  readonly keys: readonly string[];
  readonly isHeld: boolean;
  /** What the store granted for its keys: to the outermost of the locks around it. */
  readonly leases: readonly { readonly keys: readonly string[]; readonly sharing: Sharing }[];
  readonly nesting: Nesting<Self>;
  readonly holdTime: { readonly overAt: number } | undefined;
  lose(reason: LostReason, forced?: ForcedUnlock): void;
}

/** How a nested lock came to be. */
export interface NestedIn<L> {
  /** The locks of the calls that it is nested in. */
  readonly parents: readonly L[];
  /** The keys that it reads together with siblings. */
  readonly shared: ReadonlySet<string>;
  /** Lets siblings go on, when it ends. */
  readonly leave: () => void;
}

const OUTERMOST: NestedIn<never> = { parents: [], shared: new Set(), leave: () => undefined };

/**
 * The place of a lock among nested calls: the locks that it is nested in, and those that are nested in it. A method may
 * call itself thousands of levels deep, so nothing here goes from level to level by recursion.
 */
export class Nesting<L extends NestedLock<L>> {
  /** When the first of the locks that it is nested in is reported as held for too long; Infinity: never. */
  readonly overAt: number;
  readonly #lock: L;
  readonly #nestedIn: NestedIn<L>;
  readonly #children = new Set<L>();
  #queue: LocalQueue<never> | undefined;
  #turns: LocalQueue<never> | undefined;
  #readers: Set<L> | undefined;
  #hasLeft = false;

  constructor(lock: L, nestedIn: NestedIn<L> = OUTERMOST) {
    this.#lock = lock;
    this.#nestedIn = nestedIn;
    this.overAt = Math.min(...nestedIn.parents.map(({ holdTime, nesting }) => holdTime?.overAt ?? nesting.overAt));
    for (const parent of nestedIn.parents) parent.nesting.#children.add(lock);
  }

  get parents(): readonly L[] {
    return this.#nestedIn.parents;
  }

  /** Whether the lock is nested in others. */
  get hasParents(): boolean {
    return this.parents.length > 0;
  }

  /** Whether locks are nested in it. */
  get hasChildren(): boolean {
    return this.#children.size > 0;
  }

  /** Whether the lock reads a key together with siblings. */
  isShared(key: string): boolean {
    return this.#nestedIn.shared.has(key);
  }

  /** Where calls nested in this lock wait for their turns, one at a time for each key. */
  get queue(): LocalQueue<never> {
    return (this.#queue ??= new LocalQueue());
  }

  /** Where tries of the same work, which share this lock, wait for their turns. */
  get turns(): LocalQueue<never> {
    return (this.#turns ??= new LocalQueue());
  }

  /** The locks nested in this one that read together. */
  get readers(): Set<L> {
    return (this.#readers ??= new Set());
  }

  /** How the lock lets calls nested in it share a key of it. */
  sharing(key: string): Sharing {
    // Of the outermost lock with the key.
    const { sharing } = this.#lock.leases.find(({ keys }) => keys.includes(key))!;
    // A writer nested in a reader has the key for itself.
    return sharing === 'read' && this.hasParents ? 'exclusive' : sharing;
  }

  /**
   * The lock whose local queue nested callers join: for a reader that shares the key with its siblings, that of the
   * call they are all in.
   */
  queueOwner(key: string): L {
    let owner = this.#lock;
    while (owner.nesting.isShared(key)) owner = owner.nesting.#parentWith(key);
    return owner;
  }

  /** Whether the lock is that one, or nested in it. */
  isWithin(other: L): boolean {
    const around = new Set([this.#lock]);
    // A set lists what is added meanwhile, too.
    for (const { nesting } of around) for (const parent of nesting.parents) around.add(parent);
    return around.has(other);
  }

  /** Detaches the lock from its parents: losing a parent no longer loses it. */
  detach(): void {
    for (const parent of this.parents) parent.nesting.#children.delete(this.#lock);
  }

  /** Lets siblings go on. Does nothing when called again: the turn is somebody else's by then. */
  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#nestedIn.leave();
  }

  /** The lock, and all that are nested in it: each after those that it is nested in first. */
  get withNested(): readonly L[] {
    const locks = new Set([this.#lock]);
    // A set lists what is added meanwhile, too.
    for (const { nesting } of locks) for (const child of nesting.#children) locks.add(child);
    return [...locks];
  }

  /**
   * Lets the calls go on that wait to be nested in this lock, which is lost. When only a parent call has ended, and the
   * call that its siblings are all in goes on, these go on too: they, and what the work of this lock still calls, must
   * not wait for that work.
   */
  lost(reason: LostReason): void {
    this.#queue?.releaseAll();
    if (reason === 'unlocked' && this.#lock.keys.some((key) => this.#hasSiblings(key))) this.leave();
  }

  /** Loses all locks nested in this one, and lets the calls that wait to be nested in it go on. */
  loseChildren(reason: LostReason): void {
    for (const child of this.#children) child.lose(reason);
    this.#queue?.releaseAll();
  }

  /** Whether the call goes on in which others may wait for it. */
  #hasSiblings(key: string): boolean {
    return this.hasParents && this.#parentWith(key).nesting.queueOwner(key).isHeld;
  }

  #parentWith(key: string): L {
    return this.parents.find((parent) => parent.keys.includes(key))!;
  }
}
