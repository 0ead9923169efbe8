import { now, timerAt } from '../clock/deadline.js';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { LeaseRegistry } from './lease/lease-registry.js';

interface ShutdownParts {
  readonly open: LeaseRegistry;
  /** Turns away those who wait. */
  readonly failAll: (refusal: LockUnavailableError) => void;
  /** Takes back what is left, and closes the store. */
  readonly close: () => Promise<void>;
}

/** How a service ends: no new locks; a grace for the held ones; then their holders are told to stop, and at the end the locks are taken back. */
export class Shutdown {
  readonly #parts: ShutdownParts;
  #refusal: LockUnavailableError | undefined;
  #grace: { readonly endsAt: number; readonly timer: NodeJS.Timeout | undefined } | undefined;
  #ended: Promise<void> | undefined;

  constructor(parts: ShutdownParts) {
    this.#parts = parts;
  }

  /** Why there are no new locks any more. */
  get refusal(): LockUnavailableError | undefined {
    return this.#refusal;
  }

  /**
   * The grace begins. When it is over, there are no new locks, and who holds one is told to stop; it keeps its keys until it has. Beginning
   * again changes nothing.
   *
   * @returns when it is over, by the monotonic clock
   */
  startGrace(graceMs: number): number {
    if (!this.#grace) {
      const endsAt = now() + graceMs;
      this.#grace = { endsAt, timer: timerAt(endsAt, () => this.#endGrace())?.unref() };
    }
    return this.#grace.endsAt;
  }

  /** From now on every new lock is refused, and those who wait are told so. */
  stopGranting(): void {
    this.#refusal ??= new LockUnavailableError('This app is shutting down and takes no new locks. Ask another node.');
    this.#parts.failAll(this.#refusal);
  }

  /** Waits for the held locks until the grace is over, and ends the service. */
  end(graceMs: number): Promise<void> {
    return (this.#ended ??= this.#end(graceMs));
  }

  async #end(graceMs: number): Promise<void> {
    const graceEndsAt = this.startGrace(graceMs);
    this.stopGranting();
    await this.#parts.open.answered();
    await this.#parts.open.empty(graceEndsAt);
    clearTimeout(this.#grace!.timer);
    await this.#parts.close();
  }

  #endGrace(): void {
    this.stopGranting();
    for (const lease of [...this.#parts.open]) lease.abort('shutdown');
  }
}
