import type { Cancellation, OwnedLock } from '../../store/lock-store.js';

interface Stray {
  /** As it was asked for. */
  readonly lock: Cancellation;
  /** How many commands that ask for it may still arrive. */
  readonly copies: number;
}

/**
 * Locks that were asked for more than once, as the connection dropped: whatever was sent before may still arrive, even after
 * the release.
 */
export class StrayCopies {
  readonly #byPart = new Map<string, Stray>();

  /** So many more commands may still arrive, none most of the time. */
  add(lock: Cancellation, copies: number): void {
    if (copies === 0) return;
    const part = partOf(lock);
    this.#byPart.set(part, { lock, copies: copies + (this.#byPart.get(part)?.copies ?? 0) });
  }

  /** Forgets a lock, which is to be given back, and answers what is known of it. */
  take(lock: OwnedLock): Stray | undefined {
    if (this.#byPart.size === 0) return undefined;
    const part = partOf(lock);
    const stray = this.#byPart.get(part);
    this.#byPart.delete(part);
    return stray;
  }
}

/** Names a lock, or that part of it that is asked for in one call. */
const partOf = ({ keys, token }: OwnedLock): string => `${token} ${keys[0]}`;
