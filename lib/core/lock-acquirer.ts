import { now } from '../clock/deadline.js';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import { hasLocalWaiters, type Granted, type Busy, type LockStore, type OwnedLock } from '../store/lock-store.js';
import { isGrant, type Answer, type PendingAcquire } from './waiting/pending-acquire.js';
import { acquireNested } from './nesting/acquire-nested.js';
import { enterKeys, queueFor } from './waiting/enter-keys.js';
import { listenToStore } from './waiting/store-listener.js';
import { LocalQueue } from './waiting/local-queue.js';
import { Lease } from './lease/lease.js';
import { LeaseChanges } from './lease/lease-changes.js';
import { HandOffRun } from './lease/hand-off-run.js';
import type { LockEvents } from './lock/lock-events.js';
import { usesLocalQueue, allowsHandOff, turnsOf, type LockRequest, type Refusal } from './request/lock-request.js';
import { TokenSource } from './request/lock-token.js';
import { Lock, type LockIssuer } from './lock/lock.js';
import { LeaseRegistry } from './lease/lease-registry.js';
import { Shutdown } from './shutdown.js';
import { PendingAcquires } from './waiting/pending-acquires.js';
import { TooSlowError } from './too-slow.error.js';
import type { DeadlockDetector } from './nesting/deadlock-detector.js';
import { Watchdog } from './lease/watchdog.js';

/** Gets locks and gives them back: from and to other callers of this process where it may, else the store. */
export class LockAcquirer implements LockIssuer {
  readonly changes: LeaseChanges;
  readonly events: LockEvents;
  readonly shutdown: Shutdown;
  readonly #store: LockStore;
  readonly #watchdog: Watchdog;
  readonly #gate = new LocalQueue();
  readonly #tokens = new TokenSource();
  readonly #open = new LeaseRegistry(() => this.#resync());
  readonly #queue: PendingAcquires;
  readonly #replied: () => void;

  /** @param replied is called when the store has answered a call, with or without a lock */
  constructor(store: LockStore, events: LockEvents, waiting: DeadlockDetector, replied: () => void) {
    this.events = events;
    this.#replied = replied;
    this.#store = store;
    this.#watchdog = new Watchdog(store);
    this.changes = new LeaseChanges(store, this.#watchdog);
    this.#queue = new PendingAcquires({ store, gate: this.#gate, waiting });
    const failAll = (refusal: LockUnavailableError) =>
      [this.#gate, this.#queue].forEach((waiting) => waiting.failAll(refusal));
    this.shutdown = new Shutdown({ open: this.#open, failAll, close: () => this.#close() });
    listenToStore(store, {
      source: this.#tokens.name,
      queue: this.#queue,
      open: this.#open,
      watchdog: this.#watchdog,
      resync: () => this.#resync(),
    });
  }

  /**
   * Takes the keys of the request, waiting as long as it allows.
   *
   * @throws LockUnavailableError, or the reason of a signal that aborts the wait
   */
  acquire(request: LockRequest): Promise<Lock | Refusal> {
    const startedAt = now();
    if (request.signal?.aborted) return Promise.reject(request.signal.reason);
    if (this.shutdown.refusal) return Promise.reject(this.shutdown.refusal);
    const [key] = request.keys;
    const single = request.keys.length === 1;
    if (!usesLocalQueue(request) || (single && this.#gate.tryEnter(key!)))
      return this.#ask(request, startedAt, startedAt);
    const here = { startedAt, holder: this.#tokens.holder, waiting: this.#queue.waiting };
    const passage = single ? queueFor(key!, this.#gate, request, here) : enterKeys(() => this.#gate, request, here);
    return passage.then((passage) => (passage === 'turn' ? this.#entered(request, startedAt) : passage));
  }

  /** Takes keys that outer calls hold already: for each the innermost lock that has it. Answers `'outlived'` when one has ended. */
  acquireWithin(outers: ReadonlyMap<string, Lock>, request: LockRequest): Promise<Lock | Refusal | 'outlived'> {
    return acquireNested(outers, request, { holder: this.#tokens.holder, giver: this, waiting: this.#queue.waiting });
  }

  /** Gives a lock back. Never rejects: the store itself goes on trying when it can't be reached. */
  unlock(lock: Lock): Promise<boolean> {
    const { nesting } = lock;
    nesting?.leave();
    if (nesting) return Promise.resolve(!lock.lost);
    const lease = lock.leases[0]!;
    if (!lease.isHeld) {
      void this.#released(lease, lease.keepMs);
      return Promise.resolve(false);
    }
    if (this.#handOff(lease, lock)) return Promise.resolve(true);
    return this.#giveBack(lock);
  }

  async #close(): Promise<void> {
    const left = [...this.#open].filter(({ isHeld }) => isHeld);
    for (const lease of left) lease.lose('shutdown');
    await Promise.all(left.map((lease) => this.#released(lease, lease.keepMs)));
    this.#watchdog.stop();
    await this.#store.close();
  }

  /** It is through the gates, and may have waited there. */
  #entered(request: LockRequest, startedAt: number): Promise<Lock | Refusal> {
    if (!this.shutdown.refusal) return this.#ask(request, startedAt, now());
    this.#queue.leaveLocalQueue(request.keys);
    throw this.shutdown.refusal;
  }

  /** Asks the store with a new token: what happens to an earlier one does not touch it. */
  #ask(request: LockRequest, startedAt: number, sentAt: number): Promise<Lock | Refusal> {
    const claim = this.#queue.register(request, this.#tokens.next(this.#mayRun(request)), startedAt);
    this.#open.startAsking();
    // Not an async function: an uncontended lock is nothing but this, and each "await" costs it a µs.
    return this.#queue.ask(claim).then(
      (reply) => {
        this.#replied();
        const answer = { reply, sentAt, again: claim.isQueued };
        const lock = isGrant(answer) ? this.#begin(claim, answer, request) : undefined;
        if (!lock) return this.#askOn(claim, answer, request, startedAt);
        this.#queue.unregister(claim);
        this.#open.stopAsking();
        return lock;
      },
      (error: unknown) => this.#failed(claim, request, error),
    );
  }

  /** The first answer brought no lock: waits, or asks again. */
  async #askOn(claim: PendingAcquire, first: Answer, asked: LockRequest, startedAt: number): Promise<Lock | Refusal> {
    const request = isGrant(first) ? asked : this.#queue.stepAside(asked);
    let answer: Lock | Refusal | undefined;
    try {
      const outcome = isGrant(first) ? first : await this.#queue.wait(claim, first as Answer<Busy>, request, startedAt);
      if (outcome && 'reply' in outcome) {
        this.#replied();
        answer = this.#begin(claim, outcome, request) ?? (await this.#tooLate(claim, outcome, request, startedAt));
      } else answer = outcome;
    } catch (error) {
      return this.#failed(claim, request, error);
    }
    this.#queue.unregister(claim);
    this.#open.stopAsking();
    if (!answer) return this.#ask(request, startedAt, now());
    if (!(answer instanceof Lock)) this.#queue.leaveLocalQueue(turnsOf(request));
    return answer;
  }

  #failed(claim: PendingAcquire, request: LockRequest, error: unknown): never {
    this.#queue.unregister(claim);
    this.#open.stopAsking();
    const isOwn =
      error instanceof TooSlowError || request.waitSignals().some(({ aborted, reason }) => aborted && reason === error);
    const turns = turnsOf(request);
    if (error instanceof LockUnavailableError && !isOwn)
      for (const key of turns) this.#gate.fail(key, error, request.keys);
    this.#queue.leaveLocalQueue(turns);
    throw error;
  }

  /** Whether there are callers here that the lock could be handed on to. */
  #mayRun(request: LockRequest): boolean {
    return allowsHandOff(request) && this.#gate.next(request.keys[0]!) !== undefined;
  }

  #begin(
    claim: PendingAcquire,
    { reply, sentAt, again = false }: Answer<Granted>,
    request: LockRequest,
  ): Lock | undefined {
    const { token = claim.token } = reply;
    const lease = new Lease(
      request,
      token,
      allowsHandOff(request) ? (reply.fenceCount ?? 1) : 1,
      sentAt,
      reply.leaseMs,
    );
    if (lease.fenceCount > 1 && (hasLocalWaiters(token) || reply.contended))
      lease.handOffRun = new HandOffRun(reply, lease.heardAt);
    if (claim.contended) lease.handOffRun?.markContended();
    if (!lease.isHeld || claim.lost || request.signal?.aborted || this.shutdown.refusal) return undefined;
    lease.onLost = this.#lost;
    lease.isRegained = again;
    this.#open.add(lease);
    const lock = this.#admit(lease, request, reply.fence);
    this.#watchdog.watch(lease);
    for (const key of lease.turns) {
      this.#gate.setFront(key, 'inside');
      this.#gate.setEnd(key, lease);
    }
    return lock;
  }

  /** The grant came too late to be of use: the lease is over already, or was taken away, or the caller has gone, or the app is going. */
  async #tooLate(
    { keys, token, leaseMs }: PendingAcquire,
    { reply, sentAt }: Answer<Granted>,
    request: LockRequest,
    startedAt: number,
  ): Promise<undefined> {
    await this.#released({ keys, token: reply.token ?? token, leaseMs });
    request.signal?.throwIfAborted();
    if (this.shutdown.refusal) throw this.shutdown.refusal;
    if (now() >= startedAt + request.waitMs) throw new TooSlowError(now() - sentAt, leaseMs);
  }

  #admit(lease: Lease, request: LockRequest, fence: number): Lock {
    const lock = new Lock({ keys: lease.keys, fence, leases: [lease], giver: this, request });
    lease.admit(lock, request);
    return lock;
  }

  /** Gives the lock straight to the next caller of this process, if it may have it. */
  #handOff(lease: Lease, { key, fence }: Lock): boolean {
    const next = lease.fenceCount > 1 ? this.#gate.next(key) : undefined;
    if (
      !next ||
      lease.isNamed ||
      lease.sharing !== 'exclusive' ||
      lease.keepMs > 0 ||
      !allowsHandOff(next) ||
      !lease.isGoodFor(next)
    )
      return false;
    // Nobody told it who else waits: as if somebody did.
    const run = (lease.handOffRun ??= new HandOffRun(
      { granted: true, fence, fenceCount: lease.fenceCount, contended: true },
      lease.heardAt,
    ));
    if (!run.canHandOff) return false;
    const { renewUntil } = lease;
    const lock = this.#admit(lease, next, run.takeFence());
    // Else a renewal that is under way would be sent again with each hand-off.
    if (lease.renewUntil !== renewUntil) this.#watchdog.replan(lease);
    this.#gate.handOff(key, lock);
    if (run.needsRefill(this.#gate.next(key) !== undefined)) void run.refill(this.#store, lease);
    return true;
  }

  #giveBack(lock: Lock): Promise<boolean> {
    const lease = lock.leases[0]!;
    lease.startRelease();
    this.#watchdog.unwatch(lease);
    const released = this.#released(lease, lease.keepMs, (ours) => {
      if (!ours) lock.lose('taken');
      this.#open.delete(lease);
      return !lock.lost;
    });
    // Whoever is next in this process asks in the same tick, so "mine is free, queue me again" is one command.
    this.#queue.leaveLocalQueue(lease.turns);
    return released;
  }

  /** Answers what `then` makes of it. Not ours is only what the store says is not; while it does not answer, it goes on trying. */
  #released(lock: OwnedLock, keepMs = 0, then: (ours: boolean) => boolean = (ours) => ours): Promise<boolean> {
    try {
      return this.#store.release(lock, keepMs).then(then, () => then(true));
    } catch {
      return Promise.resolve(then(true));
    }
  }

  readonly #lost = (lease: Lease): void => {
    this.#watchdog.unwatch(lease);
    this.#open.delete(lease);
    this.#queue.leaveLocalQueue(lease.turns);
  };

  #resync(): void {
    this.#queue.wakeAll();
    void this.#watchdog.verify([...this.#open]);
  }
}
