import { now, timerAt } from '../clock/deadline.js';
import { nextTurn } from '../clock/next-turn.js';
import { atRoot } from '../clock/root-context.js';
import type { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { LeaseRegistry } from './lease/lease-registry.js';
import { ShuttingDownError } from './lock/shutting-down.error.js';

/**
 * How long a refusal takes at most while the app still runs, in ms. Nest may wait long for its HTTP requests, and this
 * for held locks; meanwhile workers fetch one job after the other, and would fail a whole queue of them.
 */
const REFUSAL_MS = 1000;

interface ShutdownParts {
  readonly leases: LeaseRegistry;
  /** Refuses all callers that wait. */
  readonly failWaiters: (refusal: LockUnavailableError) => void;
  /** Releases the locks that are left, and closes the store. */
  readonly close: () => Promise<void>;
}

/**
 * Ends a service: grants no new locks; waits for held ones during a grace; then tells their holders to stop, and
 * releases at the end what is left.
 */
export class Shutdown {
  readonly #parts: ShutdownParts;
  #refusal: LockUnavailableError | undefined;
  #grace: { readonly endsAt: number; readonly timer: NodeJS.Timeout | undefined } | undefined;
  #ended: Promise<void> | undefined;
  /** Whether refused callers hear of it at once. */
  #tellsAtOnce = false;
  /** What refused callers wait for. */
  #pause: { readonly over: Promise<void>; readonly end: () => void } | undefined;

  constructor(parts: ShutdownParts) {
    this.#parts = parts;
  }

  /** Why no lock is granted any more. Undefined before that. */
  get refusal(): LockUnavailableError | undefined {
    return this.#refusal;
  }

  /**
   * Starts the grace. When it is over, no new locks are granted, and holders are told to stop; they keep their keys
   * until they have. A second start changes nothing.
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

  /** Refuses every new lock from now on, and fails the callers that wait. */
  stopGranting(): void {
    this.#refusal ??= new ShuttingDownError();
    this.#parts.failWaiters(this.#refusal);
  }

  /**
   * Resolves when refused callers may hear of it: after a moment, or when the service has ended. Those that wait when
   * the end begins hear of it at once.
   */
  pause(): Promise<void> {
    if (this.#tellsAtOnce) return Promise.resolve();
    this.#pause ??= atRoot(() => this.#newPause());
    return this.#pause.over;
  }

  /** Waits for the held locks until the grace is over, and ends the service. */
  end(graceMs: number): Promise<void> {
    return (this.#ended ??= this.#end(graceMs));
  }

  #newPause(): { readonly over: Promise<void>; readonly end: () => void } {
    let end!: () => void;
    const over = new Promise<void>((resolve) => (end = resolve));
    const timer = setTimeout(() => this.#endPause(), REFUSAL_MS);
    return { over, end: () => (clearTimeout(timer), end()) };
  }

  #endPause(): void {
    this.#pause?.end();
    this.#pause = undefined;
  }

  #tellAtOnce(): void {
    this.#tellsAtOnce = true;
    this.#endPause();
  }

  async #end(graceMs: number): Promise<void> {
    const graceEndsAt = this.startGrace(graceMs);
    this.stopGranting();
    this.#tellAtOnce();
    await nextTurn();
    this.#tellsAtOnce = false;
    await this.#parts.leases.whenNoneAcquiring();
    await this.#parts.leases.whenEmpty(graceEndsAt);
    clearTimeout(this.#grace!.timer);
    await this.#parts.close();
    this.#tellAtOnce();
  }

  #endGrace(): void {
    this.stopGranting();
    for (const lease of [...this.#parts.leases]) lease.stopHolder('shutdown');
  }
}
