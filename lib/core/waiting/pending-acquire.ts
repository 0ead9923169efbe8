import { waitFor } from '../../clock/wait-for.js';
import type { AcquireCommand, Busy, Granted, Sharing } from '../../store/lock-store.js';
import type { LockRequest } from '../request/lock-request.js';
import type { WaitingCall } from './waiting-call.js';

/** A reply of the store to a pending acquire. */
export interface AcquireReply<Reply extends Granted | Busy = Granted | Busy> {
  readonly reply: Reply;
  readonly sentAt: number;
  /** Whether the token had been sent to the store before. */
  readonly isRepeated?: boolean;
}

export const isGrant = (reply: AcquireReply): reply is AcquireReply<Granted> => reply.reply.granted;

/**
 * Acquires a lock from the store under one token: the command that is sent, and what the process hears about it
 * meanwhile.
 */
export class PendingAcquire implements AcquireCommand {
  readonly keys: readonly string[];
  readonly token: string;
  readonly leaseMs: number;
  readonly sharing: Sharing;
  readonly label: string | undefined;
  readonly queue: boolean;
  readonly fair: boolean;
  /** Of the present caller: one that gave up may have left this place in the queue to another. */
  waitsUntil = Infinity;
  /** The present caller, while it waits in the store. */
  waitingCall: Omit<WaitingCall, 'key'> | undefined = undefined;
  isQueued = false;
  wasOffered = false;
  /** Whether others wait for the lock that this is about to get: that message can arrive before the grant. */
  contended = false;
  /**
   * Whether the lock that this is about to get was taken away by force: that message can arrive before the grant, too.
   */
  wasForcedAway = false;
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

  /** Prepares to be sent once more. What was heard so far is older than the reply to come. */
  repeat(): this {
    this.isQueued = true;
    this.wasForcedAway = false;
    return this;
  }

  /** Notes that the store granted the lock, unless a later refusal makes that old news. */
  granted(grant: Granted): void {
    if (grant.fence <= this.#refusedAt) return;
    this.#grant = grant;
    this.#wake?.();
  }

  /** Notes that the store refused the lock: earlier grants are over, however late they are heard of. */
  refused({ fence }: Busy): void {
    this.#refusedAt = fence;
    if (this.#grant && this.#grant.fence <= fence) this.#grant = undefined;
  }

  /** Wakes it, if it waits, to ask the store again. */
  wake(): void {
    this.#wake?.();
  }

  /** Notes that the store offers the lock, and that it has to ask for it: now, or as soon as it waits. */
  offer(): void {
    this.#offered = true;
    this.#wake?.();
  }

  /** Ends its waiting with an error. */
  fail(error: unknown): void {
    this.#failed = { error };
    this.#fail?.(error);
  }

  /**
   * Waits to be granted or woken, at most until `untilMs`. Not an async function: each promise between a grant and its
   * caller takes a µs in which nobody has the lock.
   *
   * @throws the reason of a signal that aborts, or what it is failed with
   */
  wait(untilMs: number, signals: readonly AbortSignal[]): Promise<Granted | undefined> {
    if (this.#failed) return Promise.reject(this.#failed.error);
    if (this.#grant || this.#offered) return Promise.resolve(this.#takeGrant());
    return waitFor(
      untilMs,
      signals,
      (done: (grant: Granted | undefined) => void, fail) => {
        this.#wake = () => done(this.#takeGrant());
        this.#fail = fail;
      },
      () => (this.#wake = this.#fail = undefined),
      () => this.#takeGrant(),
    );
  }

  /** Takes the grant that was heard of, if any, so that the next wait begins anew. */
  #takeGrant(): Granted | undefined {
    const grant = this.#grant;
    this.wasOffered = grant !== undefined || this.#offered;
    this.#grant = undefined;
    this.#offered = false;
    return grant;
  }
}
