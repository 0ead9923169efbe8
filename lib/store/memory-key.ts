import { now } from '../clock/deadline.js';
import type { Sharing } from './lock-store.js';
import { permitsOf } from './sharing.js';

/** Somebody in the queue of a key. */
export interface MemoryWaiter {
  readonly sharing: Sharing;
  readonly label: string | undefined;
  readonly leaseMs: number;
  aliveUntil: number;
}

/** Who has a key of a `MemoryLockStore`, and who waits for it. */
export class MemoryKey {
  readonly name: string;
  sharing: Sharing = 'exclusive';
  /** By token: when its lease ends. */
  readonly #holders = new Map<string, number>();
  /** By token, in the order they came. */
  readonly queue = new Map<string, MemoryWaiter>();

  constructor(name: string) {
    this.name = name;
  }

  /** Those whose lease has not ended, by token. */
  get holders(): ReadonlyMap<string, number> {
    const time = now();
    for (const [token, endsAt] of this.#holders) if (endsAt <= time) this.#holders.delete(token);
    return this.#holders;
  }

  get isUnused(): boolean {
    return this.queue.size === 0 && this.holders.size === 0;
  }

  has(token: string): boolean {
    return this.holders.has(token);
  }

  /** Whether one more may have it who wants to share it like this. */
  admits(sharing: Sharing): boolean {
    const { size } = this.holders;
    if (size === 0) return true;
    if (sharing === 'exclusive' || sharing !== this.sharing) return false;
    return sharing === 'read' || size < permitsOf(sharing)!;
  }

  give(token: string, sharing: Sharing, leaseMs: number): void {
    this.sharing = sharing;
    this.#holders.set(token, now() + leaseMs);
  }

  /** Lets the lease of a holder end in so long. */
  endAfter(token: string, ms: number): void {
    this.#holders.set(token, now() + ms);
  }

  /** Pushes the end of a holder's lease out, never nearer. */
  extend(token: string, leaseMs: number): void {
    this.#holders.set(token, Math.max(this.#holders.get(token)!, now() + leaseMs));
  }

  take(token: string): void {
    this.#holders.delete(token);
  }
}
