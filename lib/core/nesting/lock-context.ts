import { AsyncLocalStorage } from 'node:async_hooks';
import { nextTurn } from '../../clock/next-turn.js';
import type { Lock } from '../lock/lock.js';

/** The waits that begin in the work of a lock. */
interface Waits {
  /** Says that their caller has gone. */
  readonly gone: AbortSignal;
  readonly end: AbortController;
  /** Whether a lock is around their caller, which is then no part of its work. */
  readonly isAround: (node: LockNode) => boolean;
}

/** Ends the waits, unless they are part of other work, which goes on. */
async function endWaits({ gone, end, isAround }: Waits, around: LockNode | undefined): Promise<void> {
  // A stream may hear that its reader has gone before its request does.
  await nextTurn();
  if (gone.aborted && !workFrom(around, isAround)) end.abort(gone.reason);
}

/** A lock in an async context, and the lock around it. */
export class LockNode {
  /** Undefined when its work has ended. */
  lock: Lock | undefined;
  /** Of the service that the lock belongs to. */
  readonly context: LockContext;
  #parent: LockNode | undefined;
  #waits: Waits | undefined;

  constructor(lock: Lock, context: LockContext, parent: LockNode | undefined) {
    this.lock = lock;
    this.context = context;
    this.#parent = parent;
  }

  /**
   * Makes a signal for all waits that begin in the work. It aborts when a stream has left them, because `gone` has
   * aborted.
   */
  endOfWaits(gone: AbortSignal, isAround: (node: LockNode) => boolean): AbortSignal {
    if (this.#waits?.gone !== gone) this.#waits = { gone, end: new AbortController(), isAround };
    return this.#waits.end.signal;
  }

  /** Forgets the lock; ends the waits that a stream has left. */
  leave(isStream: boolean): void {
    this.lock = undefined;
    if (isStream && this.#waits) void endWaits(this.#waits, this.parent);
  }

  /**
   * The nearest node around this one whose work has not ended. Unlinks the others: otherwise work that starts the next
   * locked work while it runs would grow a chain for ever.
   */
  get parent(): LockNode | undefined {
    while (this.#parent && !this.#parent.lock) this.#parent = this.#parent.#parent;
    return this.#parent;
  }
}

/** The innermost lock of each async context. One for all services, because who leaves the locks of one leaves all. */
const nodes = new AsyncLocalStorage<LockNode | undefined>();

/** Takes the running async context, and all that it calls from here on, out of all locks. */
export function leaveAllLocks(): void {
  if (nodes.getStore()) nodes.enterWith(undefined);
}

/**
 * Returns the innermost lock, of any service, in whose work the running async context is, and that has been held since
 * that time.
 */
export function innermostLockSince(time: number): Lock | undefined {
  let node = nodes.getStore();
  while (node && !(node.lock && node.lock.heldSince <= time)) node = node.parent;
  return node?.lock;
}

/** Returns the locks, of any service, in whose work the running async context is; undefined when there are none. */
export function locksAround(): WeakSet<LockNode> | undefined {
  const innermost = nodes.getStore();
  if (!innermost) return undefined;
  const around = new WeakSet<LockNode>();
  for (let node: LockNode | undefined = innermost; node; node = node.parent) around.add(node);
  return around;
}

/**
 * Finds the work that a caller does in a lock, of any service, and that goes on when nobody waits for its result any
 * more: that of the innermost lock which shares its keys with nobody.
 *
 * @param isAround whether a lock is around the caller, which is then no part of its work
 */
export function workOfCaller(isAround: (node: LockNode) => boolean): LockNode | undefined {
  return workFrom(nodes.getStore(), isAround);
}

function workFrom(innermost: LockNode | undefined, isAround: (node: LockNode) => boolean): LockNode | undefined {
  for (let node = innermost; node; node = node.parent) if (isAlone(node) && !isAround(node)) return node;
  return undefined;
}

/** Whether the work of a lock goes on, and shares its keys with nobody. */
const isAlone = ({ lock }: LockNode): boolean => lock?.mode === 'exclusive' || lock?.mode === 'write';

/** Knows the locks of one service that the running async context is inside of, innermost first. */
export class LockContext {
  /** Runs the work inside a lock. Call `leave` with the same node when the work has ended. */
  run<T>(node: LockNode, work: (lock: Lock) => T): T {
    const lock = node.lock!;
    const { trace } = lock;
    return nodes.run(node, trace ? (lock) => trace.run(() => work(lock)) : work, lock);
  }

  /** Returns a function that runs work inside the locks of the running async context, whoever calls it. */
  keep(): <T>(work: () => T) => T {
    const node = nodes.getStore();
    return (work) => (node?.lock ? this.run(node, work) : nodes.run(node, work));
  }

  /** Runs work inside no lock, of any service. */
  outside<T>(work: () => T): T {
    return nodes.run(undefined, work);
  }

  enter(lock: Lock): LockNode {
    let around = nodes.getStore();
    // Not only one that is still held: another service may ask whether its work goes on inside.
    while (around && !(around.context === this ? around.lock?.isHeld : around.lock)) around = around.parent;
    return new LockNode(lock, this, around);
  }

  /**
   * Forgets the lock: promises keep the context they were made in, so each lock would otherwise keep the one before it.
   */
  leave(node: LockNode, isStream = false): void {
    node.leave(isStream);
  }

  /**
   * Returns the innermost lock of this service that is still held. Skips those that have ended, so that work which
   * schedules its own next run does not grow a chain.
   */
  innermost(): LockNode | undefined {
    let node = nodes.getStore();
    while (node && !(node.context === this && node.lock?.isHeld)) node = node.parent;
    return node;
  }

  /** Whether the running async context is in the work of a lock, be it held or lost. */
  isInside(): boolean {
    let node = nodes.getStore();
    while (node && !(node.context === this && node.lock)) node = node.parent;
    return node !== undefined;
  }

  /** Returns the innermost lock that is still held; with a key, of that key. */
  current(key?: string): Lock | undefined {
    for (const lock of this.#held()) if (key === undefined || lock.keys.includes(key)) return lock;
    return undefined;
  }

  /** Lists the keys that the running async context holds, innermost first, each once. */
  heldKeys(): readonly string[] {
    const keys = new Set<string>();
    for (const lock of this.#held()) for (const key of lock.keys) keys.add(key);
    return [...keys];
  }

  /** Finds, for each of these keys that is held, the innermost lock that has it. Undefined when none is held. */
  holding(keys: readonly string[]): ReadonlyMap<string, Lock> | undefined {
    if (!this.innermost()) return undefined;
    const asked = new Set(keys);
    const found = new Map<string, Lock>();
    for (const lock of this.#held()) {
      for (const key of lock.keys) {
        if (asked.has(key) && !found.has(key)) found.set(key, lock);
      }
      if (found.size === asked.size) break;
    }
    return found.size > 0 ? found : undefined;
  }

  /** Lists the locks that are still held, innermost first. */
  *#held(): Iterable<Lock> {
    for (let node = this.innermost(); node; node = node.parent)
      if (node.context === this && node.lock?.isHeld) yield node.lock;
  }
}
