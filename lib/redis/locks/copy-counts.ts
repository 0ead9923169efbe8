import type { Cancellation, OwnedLock } from '../../store/lock-store.js';

interface CopyCount {
  /** The lock, as it was asked for. */
  readonly lock: Cancellation;
  /** How many commands that acquire it may still arrive. */
  readonly copies: number;
}

/**
 * Remembers locks that were asked for more than once, because the connection dropped: an earlier copy of the command
 * may still arrive, even after the release.
 */
export class CopyCounts {
  readonly #byPart = new Map<string, CopyCount>();

  /** Adds copies that may still arrive: mostly none. */
  add(lock: Cancellation, copies: number): void {
    if (copies === 0) return;
    const part = partOf(lock);
    this.#byPart.set(part, { lock, copies: copies + (this.#byPart.get(part)?.copies ?? 0) });
  }

  /** Forgets a lock, because it is being released, and returns what was known about it. */
  take(lock: OwnedLock): CopyCount | undefined {
    if (this.#byPart.size === 0) return undefined;
    const part = partOf(lock);
    const counted = this.#byPart.get(part);
    this.#byPart.delete(part);
    return counted;
  }
}

/** Names a lock, or the part of it that one call asks for. */
const partOf = ({ keys, token }: OwnedLock): string => `${token} ${keys[0]}`;
