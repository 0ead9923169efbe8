import { now } from '../clock/deadline.js';
import { shown } from '../errors/messages.js';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import { coverageOf } from '../errors/store-outage.js';
import { hasLocalWaiters, type Granted, type Busy, type LockStore } from '../store/lock-store.js';
import { HandOffRun } from './lease/hand-off-run.js';
import { Lease } from './lease/lease.js';
import type { LeaseRegistry } from './lease/lease-registry.js';
import type { Watchdog } from './lease/watchdog.js';
import { createLock } from './lock/create-lock.js';
import { Lock } from './lock/lock.js';
import type { LockReleaser } from './lock-releaser.js';
import {
  abortedSignal,
  allowsHandOff,
  signalsOf,
  turnsOf,
  type LockRequest,
  type Refusal,
} from './request/lock-request.js';
import type { TokenSource } from './request/lock-token.js';
import type { Shutdown } from './shutdown.js';
import { TooSlowError } from './too-slow.error.js';
import type { LocalQueue } from './waiting/local-queue.js';
import { isGrant, type AcquireReply, type PendingAcquire } from './waiting/pending-acquire.js';
import type { PendingAcquires } from './waiting/pending-acquires.js';
import type { StoreWait } from './waiting/store-wait.js';

interface StoreAcquirerParts {
  readonly store: LockStore;
  readonly tokens: TokenSource;
  readonly watchdog: Watchdog;
  readonly leases: LeaseRegistry;
  readonly localQueue: LocalQueue<Lock>;
  readonly pendingAcquires: PendingAcquires;
  readonly storeWait: StoreWait;
  readonly releaser: LockReleaser;
  readonly shutdown: Shutdown;
  /** Called when the store has answered a call, with or without a lock. */
  readonly onReply: () => void;
}

/** Acquires locks from the store, for callers that have their turns in this process. */
export class StoreAcquirer {
  readonly #parts: StoreAcquirerParts;

  constructor(parts: StoreAcquirerParts) {
    this.#parts = parts;
  }

  /**
   * Acquires a lock under a new token: what happens to an earlier one does not touch it.
   *
   * @throws LockUnavailableError, or the reason of a signal that aborts the wait
   */
  acquire(request: LockRequest, startedAt: number, sentAt: number): Promise<Lock | Refusal> {
    const { tokens, pendingAcquires, leases, onReply } = this.#parts;
    const pending = pendingAcquires.register(request, tokens.next(this.#hasNextCaller(request)), startedAt);
    leases.startAcquire();
    // Not an async function: an uncontended lock is nothing but this, and each "await" costs it a µs.
    return this.#send(pending).then(
      (reply) => {
        if (!isReply(reply)) return this.#fail(pending, request, noReply(reply));
        onReply();
        const first = { reply, sentAt, isRepeated: pending.isQueued };
        const lock = isGrant(first) ? this.#holdGranted(pending, first, request) : undefined;
        if (!lock) return this.#acquireLater(pending, first, request, startedAt);
        this.#end(pending);
        return lock;
      },
      (error: unknown) => this.#fail(pending, request, error),
    );
  }

  /** Sends a command. A custom store may throw where it should reject, or return no promise. */
  #send(pending: PendingAcquire): Promise<unknown> {
    try {
      return Promise.resolve(this.#parts.store.acquire(pending));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Goes on after a first reply that brought no lock: waits, or begins again with a new token. */
  async #acquireLater(
    pending: PendingAcquire,
    first: AcquireReply,
    asked: LockRequest,
    startedAt: number,
  ): Promise<Lock | Refusal> {
    const { storeWait, localQueue, pendingAcquires, shutdown, onReply } = this.#parts;
    const request = isGrant(first) ? asked : storeWait.keepFirstTurn(asked);
    let result: Lock | Refusal | undefined;
    try {
      const outcome = isGrant(first)
        ? first
        : await storeWait.wait(pending, first as AcquireReply<Busy>, request, startedAt);
      if (outcome && 'reply' in outcome) {
        onReply();
        result = this.#holdGranted(pending, outcome, request);
        if (!result) await this.#returnLateGrant(pending, outcome, request, startedAt);
      } else result = outcome;
    } catch (error) {
      return this.#fail(pending, request, error);
    }
    this.#end(pending);
    if (!result && !shutdown.refusal) {
      for (const key of turnsOf(request)) localQueue.setStage(key, 'waiting');
      return this.acquire(request, startedAt, now());
    }
    if (!(result instanceof Lock)) pendingAcquires.leaveLocalQueue(turnsOf(request));
    if (!result) throw shutdown.refusal!;
    return result;
  }

  #end(pending: PendingAcquire): void {
    this.#parts.pendingAcquires.unregister(pending);
    this.#parts.leases.endAcquire();
  }

  #fail(pending: PendingAcquire, request: LockRequest, error: unknown): never {
    const { localQueue, pendingAcquires } = this.#parts;
    this.#end(pending);
    const concernsThisCallOnly =
      error instanceof TooSlowError || signalsOf(request).some(({ aborted, reason }) => aborted && reason === error);
    const turns = turnsOf(request);
    if (error instanceof LockUnavailableError && !concernsThisCallOnly) {
      const covers = coverageOf(error);
      // Where it is not known, it may be about any of the keys: only who asks for all of them would meet the same.
      const meetsTheSame = ({ keys }: LockRequest): boolean =>
        covers ? keys.some(covers) : request.keys.every((key) => keys.includes(key));
      for (const key of turns) localQueue.fail(key, error, meetsTheSame);
    }
    pendingAcquires.leaveLocalQueue(turns);
    throw error;
  }

  /**
   * Whether there is a caller here that the lock could be handed off to. Only then it comes with many fences: fences
   * that nobody takes make the counter run ahead of the server's clock, with which it begins when it is lost.
   */
  #hasNextCaller(request: LockRequest): boolean {
    if (!allowsHandOff(request)) return false;
    const next = this.#parts.localQueue.next(request.keys[0]!);
    return next !== undefined && allowsHandOff(next) && next.leaseMs === request.leaseMs;
  }

  /** Makes a lock of a grant. Undefined when the grant came too late. */
  #holdGranted(
    pending: PendingAcquire,
    { reply, sentAt, isRepeated = false }: AcquireReply<Granted>,
    request: LockRequest,
  ): Lock | undefined {
    const { leases, localQueue, watchdog, releaser, shutdown } = this.#parts;
    const { token = pending.token } = reply;
    const lease = new Lease(
      request,
      token,
      allowsHandOff(request) ? (reply.fenceCount ?? 1) : 1,
      sentAt,
      reply.leaseMs,
    );
    if (lease.fenceCount > 1 && (hasLocalWaiters(token) || reply.contended))
      lease.handOffRun = new HandOffRun(reply, lease.repliedAt);
    if (pending.contended) lease.handOffRun?.markContended();
    if (!lease.isHeld || pending.wasForcedAway || abortedSignal(request) || shutdown.refusal) return undefined;
    lease.onLost = releaser.onLost;
    lease.isReacquired = isRepeated;
    leases.add(lease);
    const lock = createLock(lease, request, reply.fence, releaser);
    watchdog.watch(lease);
    for (const key of lease.turns) {
      localQueue.setStage(key, 'inside');
      localQueue.setLease(key, lease);
    }
    return lock;
  }

  /**
   * Gives back a lock whose grant came too late: its lease is over or was taken away, the caller has gone, or the app
   * shuts down.
   *
   * @throws LockUnavailableError, or the reason of a signal that aborted, when there is no point in another try
   */
  async #returnLateGrant(
    { keys, token, leaseMs }: PendingAcquire,
    { reply, sentAt }: AcquireReply<Granted>,
    request: LockRequest,
    startedAt: number,
  ): Promise<void> {
    const { releaser, shutdown } = this.#parts;
    await releaser.release({ keys, token: reply.token ?? token, leaseMs });
    abortedSignal(request)?.throwIfAborted();
    if (shutdown.refusal) throw shutdown.refusal;
    if (now() >= startedAt + request.waitMs) throw new TooSlowError(now() - sentAt, leaseMs);
  }
}

const isReply = (reply: unknown): reply is Granted | Busy => typeof reply === 'object' && reply !== null;

/** The error of a custom store that says neither "granted" nor "busy", such as an automatic mock. */
const noReply = (reply: unknown): TypeError =>
  new TypeError(`The "acquire" of the LockStore returned ${shown(reply)} instead of a grant, or of who holds the key.`);
