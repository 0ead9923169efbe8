import { now } from '../../clock/deadline.js';
import { permitsOf, KEPT_MARK, type Sharing } from '../lock-store.js';

/** A waiter in the queue of a key. */
export interface MemoryWaiter {
  readonly sharing: Sharing;
  readonly label: string | undefined;
  readonly leaseMs: number;
  aliveUntil: number;
}

/** The holders and waiters of a key of a `MemoryLockStore`. */
export class MemoryKey {
  readonly name: string;
  sharing: Sharing = 'exclusive';
  /** Which upgrade made its holder the writer; 0 if it was acquired as one. */
  upgrade = 0;
  /** By token: the last upgrade that has ended, for as long as the key has holders. */
  readonly #over = new Map<string, number>();
  /** By token: when its lease ends. */
  readonly #holders = new Map<string, number>();
  /** By token, in the order they came. */
  readonly queue = new Map<string, MemoryWaiter>();
  /** By token: how many waiters were ahead when the queue was last counted, or when the token joined since. */
  readonly #ahead = new Map<string, number>();
  /** How many waiters have ever joined the queue, and how many of them had left when it was last counted. */
  #joined = 0;
  #leftThen = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** By token: when its lease ends. Holds only leases that have not ended. */
  get holders(): ReadonlyMap<string, number> {
    const time = now();
    for (const [token, endsAt] of this.#holders) if (endsAt <= time) this.#holders.delete(token);
    if (this.#holders.size === 0) this.#over.clear();
    return this.#holders;
  }

  get isUnused(): boolean {
    return this.queue.size === 0 && this.holders.size === 0;
  }

  has(token: string): boolean {
    return this.holders.has(token);
  }

  /** Whether one more holder may enter that shares the key like this. */
  admits(sharing: Sharing): boolean {
    const { size } = this.holders;
    if (size === 0) return true;
    if (sharing === 'exclusive' || sharing !== this.sharing) return false;
    return sharing === 'read' || size < permitsOf(sharing)!;
  }

  give(token: string, sharing: Sharing, leaseMs: number): void {
    this.sharing = sharing;
    this.upgrade = 0;
    this.#holders.set(token, now() + leaseMs);
  }

  /** Keeps a holder's part of the key that long, in ms. The token no longer owns it. */
  keep(token: string, ms: number): void {
    this.#holders.delete(token);
    this.#holders.set(token + KEPT_MARK, now() + ms);
  }

  join(token: string, waiter: MemoryWaiter): void {
    this.#ahead.set(token, this.queue.size);
    this.queue.set(token, waiter);
    this.#joined++;
  }

  /**
   * Returns how many waiters are ahead of this one. Counts anew only when one has left since, because each of a crowd
   * asks once a second.
   */
  ahead(token: string): number {
    const left = this.#joined - this.queue.size;
    if (left !== this.#leftThen) {
      this.#ahead.clear();
      for (const waiter of this.queue.keys()) this.#ahead.set(waiter, this.#ahead.size);
      this.#leftThen = left;
    }
    return this.#ahead.get(token)!;
  }

  /** Whether this upgrade of a holder comes in time: it has not ended, and no later one has begun. */
  awaits(token: string, upgrade: number): boolean {
    return this.sharing === 'read' ? (this.#over.get(token) ?? 0) < upgrade : this.upgrade <= upgrade;
  }

  /** Whether this upgrade, or a later one, made its holder the writer. */
  isWrittenSince(upgrade: number): boolean {
    return this.sharing === 'exclusive' && this.upgrade >= upgrade;
  }

  /** Makes the only holder the writer. */
  write(upgrade: number): void {
    this.sharing = 'exclusive';
    this.upgrade = upgrade;
    this.#over.clear();
  }

  /** Ends all upgrades of a holder up to this one. So it is a reader, unless a later upgrade made it the writer. */
  read(token: string, upgrade: number): void {
    if (this.sharing === 'exclusive' && this.upgrade > upgrade) return;
    this.sharing = 'read';
    if (upgrade <= (this.#over.get(token) ?? 0)) return;
    for (const other of this.#over.keys()) if (!this.has(other)) this.#over.delete(other);
    this.#over.set(token, upgrade);
  }

  /** Moves the end of a holder's lease later, never earlier. */
  extend(token: string, leaseMs: number): void {
    this.#holders.set(token, Math.max(this.#holders.get(token)!, now() + leaseMs));
  }

  take(token: string): void {
    this.#holders.delete(token);
  }
}
