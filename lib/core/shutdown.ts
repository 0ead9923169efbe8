import { now, timerAt } from '../clock/deadline.js';
import { nextTurn } from '../clock/next-turn.js';
import { waitFor } from '../clock/wait-for.js';
import type { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { LeaseRegistry } from './lease/lease-registry.js';
import { ShuttingDownError } from './lock/shutting-down.error.js';
import { isInLock } from './nesting/lock-context.js';
import { type LockRequest, signalsOf } from './request/lock-request.js';

/**
 * How long it takes at most to refuse a call that comes during the shutdown, in ms. Until the process ends, workers
 * fetch one job after the other, and would fail a whole queue of them.
 */
const REFUSAL_MS = 1000;

interface ShutdownParts {
  readonly leases: LeaseRegistry;
  /** Whether a client waits for what the running async context does. */
  readonly isAwaited: () => boolean;
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
  /** End the pauses of refused calls. */
  readonly #pauses = new Set<() => void>();

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
   * Refuses a call that comes when no locks are granted any more: after a moment, because it may be a worker that would
   * fetch its next job at once. But at once if somebody waits for the call: a client, or the end of work that holds a
   * lock.
   *
   * @throws LockUnavailableError, or the reason of a signal that aborts meanwhile
   */
  async refuse(request: LockRequest): Promise<never> {
    if (!isInLock() && !this.#parts.isAwaited()) await this.#pause(signalsOf(request));
    throw this.#refusal!;
  }

  /** Waits for the held locks until the grace is over, and ends the service. */
  end(graceMs: number): Promise<void> {
    return (this.#ended ??= this.#end(graceMs));
  }

  #pause(signals: readonly AbortSignal[]): Promise<void> {
    let end!: () => void;
    const start = (done: (value: void) => void): void => void this.#pauses.add((end = done));
    return waitFor<void>(now() + REFUSAL_MS, signals, start, () => this.#pauses.delete(end));
  }

  async #end(graceMs: number): Promise<void> {
    const graceEndsAt = this.startGrace(graceMs);
    this.stopGranting();
    await this.#parts.leases.whenNoneAcquiring();
    await this.#parts.leases.whenEmpty(graceEndsAt);
    clearTimeout(this.#grace!.timer);
    await this.#parts.close();
    for (const end of this.#pauses) end();
    // Nest may end the process after this. Each refused call hears of it in the next turn.
    await nextTurn();
    await nextTurn();
  }

  #endGrace(): void {
    this.stopGranting();
    for (const lease of [...this.#parts.leases]) lease.stopHolder('shutdown');
  }
}
