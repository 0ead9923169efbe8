import { waitFor } from '../../clock/wait-for.js';
import type { AcquireCommand, Granted, Busy, Sharing } from '../../store/lock-store.js';
import type { LockRequest } from '../request/lock-request.js';

/** An answer of the store, and when it was asked. */
export interface Answer<Reply extends Granted | Busy = Granted | Busy> {
  readonly reply: Reply;
  readonly sentAt: number;
  /** Whether it had been asked with this token before. */
  readonly again?: boolean;
}

export const isGrant = (answer: Answer): answer is Answer<Granted> => answer.reply.granted;

/** A token that a caller asks the store for a lock with, and maybe waits with. */
export class PendingAcquire implements AcquireCommand {
  readonly keys: readonly string[];
  readonly token: string;
  readonly leaseMs: number;
  readonly sharing: Sharing;
  readonly label: string | undefined;
  readonly queue: boolean;
  readonly fair: boolean;
  /** Of the caller that has it now: one that gave up may have left it to another. */
  waitsUntil = Infinity;
  isQueued = false;
  wasOffered = false;
  /** Whether others wait for the lock that it is being given: that can be heard of before the grant. */
  contended = false;
  /** Whether the lock that it is being given was taken away by force: that can be heard of before the grant, too. */
  lost = false;
  #refusedAt = 0;
  #grant: Granted | undefined;
  #offered = false;
  #wake: (() => void) | undefined;
  #fail: ((error: unknown) => void) | undefined;
  #failed: { readonly error: unknown } | undefined;

  constructor({ keys, leaseMs, sharing, label, waitMs, maxWaiters, fair }: LockRequest, token: string) {
    this.keys = keys;
    this.token = token;
    this.leaseMs = leaseMs;
    this.sharing = sharing;
    this.label = label;
    this.queue = waitMs > 0 && maxWaiters > 0;
    this.fair = fair;
  }

  /** The store gave it the lock, unless that is old news. */
  granted(grant: Granted): void {
    if (grant.fence <= this.#refusedAt) return;
    this.#grant = grant;
    this.#wake?.();
  }

  /** The store refused it: what it was given before is over, however late it hears of that. */
  refused({ fence }: Busy): void {
    this.#refusedAt = fence;
    if (this.#grant && this.#grant.fence <= fence) this.#grant = undefined;
  }

  /** Time to ask again, if it waits. */
  wake(): void {
    this.#wake?.();
  }

  /** It was given the lock, and has to ask for it: now, or as soon as it waits. */
  offer(): void {
    this.#offered = true;
    this.#wake?.();
  }

  /** There is no point in waiting any more. */
  fail(error: unknown): void {
    this.#failed = { error };
    this.#fail?.(error);
  }

  /**
   * Waits to be granted or woken, at most until `untilMs`.
   *
   * @throws the reason of a signal that aborts, or what it is failed with
   */
  async wait(untilMs: number, signals: readonly AbortSignal[]): Promise<Granted | undefined> {
    if (this.#failed) throw this.#failed.error;
    if (!this.#grant && !this.#offered) {
      await waitFor<true>(
        untilMs,
        signals,
        (done, fail) => {
          this.#wake = () => done(true);
          this.#fail = fail;
        },
        () => (this.#wake = this.#fail = undefined),
      );
    }
    const grant = this.#grant;
    this.wasOffered = grant !== undefined || this.#offered;
    this.#grant = undefined;
    this.#offered = false;
    return grant;
  }
}
