import { now, timerAt } from '../clock/deadline.js';
import { nextTurn } from '../clock/next-turn.js';
import type { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { LeaseRegistry } from './lease/lease-registry.js';
import type { Lock } from './lock/lock.js';
import { ShuttingDownError } from './lock/shutting-down.error.js';
import { innermostLockSince } from './nesting/lock-context.js';
import { endPauses, pauseBeforeRefusal } from './refusal-pauses.js';
import { type LockRequest, signalsOf } from './request/lock-request.js';

/**
 * How many calls of work that holds a lock are refused at once. The shutdown waits for that work, so it need not wait
 * for each step of a batch. But the work may be that of a worker, too.
 */
const REFUSED_AT_ONCE = 100;

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
  /** Since when no lock is granted any more, by the monotonic clock. */
  #refusedSince = Infinity;
  #grace: { readonly endsAt: number; readonly timer: NodeJS.Timeout | undefined } | undefined;
  #ended: Promise<void> | undefined;
  /** How many calls were refused, by the innermost lock that they were made in, and that was held before. */
  readonly #refusals = new WeakMap<Lock, number>();

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
    if (!this.#refusal) {
      this.#refusal = new ShuttingDownError();
      this.#refusedSince = now();
    }
    this.#parts.failWaiters(this.#refusal);
  }

  /**
   * Refuses a call that comes when no locks are granted any more: after a moment, because it may be a worker that would
   * fetch its next job at once. But at once if a client waits for the call, or work that holds a lock.
   *
   * @throws LockUnavailableError, or the reason of a signal that aborts meanwhile
   */
  async refuse(request: LockRequest): Promise<never> {
    if (!this.#parts.isAwaited() && !this.#isStepOfWork()) await pauseBeforeRefusal(signalsOf(request));
    throw this.#refusal!;
  }

  /** Waits for the held locks until the grace is over, and ends the service. */
  end(graceMs: number): Promise<void> {
    return (this.#ended ??= this.#end(graceMs));
  }

  /** Whether the call is one of the first of work that has held a lock since before calls were refused. */
  #isStepOfWork(): boolean {
    // Not a later one: each job of a worker may have its own, of another service or nested in the worker's.
    const lock = innermostLockSince(this.#refusedSince);
    if (!lock) return false;
    const refusals = (this.#refusals.get(lock) ?? 0) + 1;
    this.#refusals.set(lock, refusals);
    return refusals <= REFUSED_AT_ONCE;
  }

  async #end(graceMs: number): Promise<void> {
    const graceEndsAt = this.startGrace(graceMs);
    this.stopGranting();
    await this.#parts.leases.whenNoneAcquiring();
    await this.#parts.leases.whenEmpty(graceEndsAt);
    clearTimeout(this.#grace!.timer);
    await this.#parts.close();
    endPauses();
    // Nest may end the process after this. Each refused call hears of it in the next turn.
    await nextTurn();
    await nextTurn();
  }

  #endGrace(): void {
    this.stopGranting();
    for (const lease of [...this.#parts.leases]) lease.stopHolder('shutdown');
  }
}
