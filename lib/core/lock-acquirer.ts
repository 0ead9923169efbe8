import { now } from '../clock/deadline.js';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { Granted, Held, LockStore, Renewal } from '../store/lock-store.js';
import type { Answer, Claim } from './claim.js';
import { enterKeys, enterWithin, leaveKeys, queueFor } from './enter-keys.js';
import { KeyGate } from './key-gate.js';
import { Lease } from './lease.js';
import { LocalRun } from './local-run.js';
import { handsOn, heldBy, refusal, type LockRequest, type Refusal } from './lock-request.js';
import { TokenSource } from './lock-token.js';
import { Lock } from './lock.js';
import { OpenLeases } from './open-leases.js';
import { StoreQueue } from './store-queue.js';
import { Watchdog } from './watchdog.js';

/** Gets locks and gives them back: from and to other callers of this process where it may, else the store. */
export class LockAcquirer {
  readonly #store: LockStore;
  readonly #watchdog: Watchdog;
  readonly #gate = new KeyGate();
  readonly #tokens = new TokenSource();
  readonly #open = new OpenLeases();
  readonly #queue: StoreQueue;
  /** Why there are no new locks any more. */
  #closed: LockUnavailableError | undefined;

  constructor(store: LockStore) {
    this.#store = store;
    this.#watchdog = new Watchdog(store);
    this.#queue = new StoreQueue(store);
    store.listen({
      source: this.#tokens.name,
      granted: (token, grant) => this.#queue.granted(token, grant) || this.#open.get(token) !== undefined,
      wanted: (token) => this.#open.get(token)?.run?.contend(),
      missed: () => this.#queue.wakeAll(),
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
    const [key] = request.keys;
    const single = request.keys.length === 1;
    if (request.fair || (single && this.#gate.tryEnter(key!))) return this.#ask(request, startedAt);
    if (this.#closed) return Promise.reject(this.#closed);
    const here = { startedAt, holder: this.#tokens.holder };
    const passage = single ? queueFor(key!, this.#gate, request, here) : enterKeys(this.#gate, request, here);
    return passage.then((passage) => (passage === 'turn' ? this.#ask(request, startedAt) : passage));
  }

  /** Takes keys that `outer` holds already: asks the store nothing, and waits only for siblings nested in `outer` too. */
  async acquireWithin(outer: Lock, request: LockRequest): Promise<Lock | Refusal> {
    request.signal?.throwIfAborted();
    const startedAt = now();
    const passage = await enterWithin(outer, request, { startedAt, holder: this.#tokens.holder });
    if (passage === 'inside') return new Lock({ keys: request.keys, fence: outer.fence, lease: outer.lease, giver: this, outer });
    if (passage !== 'outside') return passage;
    // The outer call ended while this one queued behind a sibling: it belongs to the next one out, or stands on its own.
    const rest = { ...request, waitMs: Math.max(0, startedAt + request.waitMs - now()) };
    return outer.outer ? this.acquireWithin(outer.outer, rest) : this.acquire(rest);
  }

  /** Gives a lock back. Never rejects: the store itself goes on trying when it can't be reached. */
  unlock(lock: Lock): Promise<boolean> {
    const { lease, outer, key } = lock;
    if (outer) {
      leaveKeys(outer.inner, lock.keys);
      return Promise.resolve(!lock.lost);
    }
    if (!lease.isHeld) {
      void this.#release(lease);
      return Promise.resolve(false);
    }
    if (this.#handOn(lease, key)) return Promise.resolve(true);
    return this.#giveBack(lock);
  }

  /** @throws LockUnavailableError */
  async extend(lease: Lease, leaseMs: number): Promise<void> {
    const sentAt = now();
    const [ours] = await this.#store.renew([{ keys: lease.keys, token: lease.token, leaseMs }]);
    if (!ours) lease.lose('taken');
    if (!lease.isHeld) return;
    lease.leaseMs = leaseMs;
    lease.confirm(sentAt, leaseMs);
    this.#watchdog.replan(lease);
  }

  /** From now on every new lock is refused, and those who wait are told so. */
  stopGranting(): void {
    this.#closed ??= new LockUnavailableError('This app is shutting down and takes no new locks. Ask another node.');
    this.#gate.failAll(this.#closed);
    this.#queue.failAll(this.#closed);
  }

  /** Waits for the held locks, at most `graceMs`, takes back those that are left, and closes the store. */
  async close(graceMs: number): Promise<void> {
    this.stopGranting();
    await this.#open.answered();
    await this.#open.empty(now() + graceMs);
    const left = [...this.#open];
    for (const lease of left) lease.lose('shutdown');
    await Promise.all(left.map((lease) => this.#release(lease)));
    this.#watchdog.stop();
    await this.#store.close();
  }

  async #ask(request: LockRequest, startedAt: number): Promise<Lock | Refusal> {
    let claim: Claim | undefined;
    let answer: Lock | Refusal | undefined;
    this.#open.startAsking();
    try {
      while (!answer) {
        if (this.#closed) throw this.#closed;
        if (claim) this.#queue.drop(claim);
        claim = this.#queue.stake(request, this.#tokens.next(this.#mayRun(request)));
        const sentAt = now();
        const reply = await this.#store.acquire(claim);
        const outcome = reply.granted ? { reply, sentAt } : await this.#wait(claim, { reply, sentAt }, request, startedAt);
        answer = 'reply' in outcome ? (this.#begin(claim, outcome, request) ?? (await this.#tooLate(claim, outcome, request, startedAt))) : outcome;
      }
      return answer;
    } catch (error) {
      if (error instanceof LockUnavailableError && !request.fair) for (const key of request.keys) this.#gate.fail(key, error);
      throw error;
    } finally {
      if (claim) this.#queue.drop(claim);
      if (!(answer instanceof Lock) && !request.fair) leaveKeys(this.#gate, request.keys);
      this.#open.stopAsking();
    }
  }

  async #wait(claim: Claim, refused: Answer<Held>, request: LockRequest, startedAt: number): Promise<Answer<Granted> | Refusal> {
    const [key] = request.keys;
    if (!request.fair) {
      if (request.waitMs > 0 && request.maxWaiters === 0) return refusal('too-many-waiters', request, startedAt, heldBy(refused.reply));
      for (const key of request.keys) this.#gate.setFront(key, 'waiting');
      return this.#queue.wait(claim, refused, request, startedAt);
    }
    if (this.#gate.waiters(key!) >= request.maxWaiters) {
      await this.#store.cancel(claim);
      return refusal('too-many-waiters', request, startedAt, heldBy(refused.reply));
    }
    return this.#gate.beside(key!, this.#queue.wait(claim, refused, request, startedAt));
  }

  /** Whether there are callers here that the lock could be handed on to. */
  #mayRun(request: LockRequest): boolean {
    return handsOn(request) && this.#gate.next(request.keys[0]!) !== undefined;
  }

  #begin(claim: Claim, { reply, sentAt }: Answer<Granted>, request: LockRequest): Lock | undefined {
    const run = claim.token.endsWith('+') ? new LocalRun(claim.token, reply) : undefined;
    const lease = new Lease(request, claim.token, run, sentAt);
    if (!lease.isHeld || request.signal?.aborted || this.#closed) return undefined;
    lease.onLost = this.#lost;
    this.#open.add(lease);
    const lock = this.#admit(lease, request, reply.fence);
    this.#watchdog.watch(lease);
    if (lease.gated) for (const key of lease.keys) this.#gate.setFront(key, 'inside');
    return lock;
  }

  /** The grant came too late to be of use: the lease is over already, or the caller has gone, or the app is going. */
  async #tooLate(claim: Claim, { sentAt }: Answer<Granted>, request: LockRequest, startedAt: number): Promise<undefined> {
    await this.#release(claim);
    request.signal?.throwIfAborted();
    if (this.#closed) throw this.#closed;
    if (now() >= startedAt + request.waitMs) throw tooSlow(sentAt, claim.leaseMs);
  }

  #admit(lease: Lease, request: LockRequest, fence: number): Lock {
    const lock = new Lock({ keys: lease.keys, fence, lease, giver: this });
    lease.admit(lock, request);
    return lock;
  }

  /** Gives the lock straight to the next caller of this process, if it may have it. */
  #handOn(lease: Lease, key: string): boolean {
    const { run } = lease;
    const next = run && this.#gate.next(key);
    if (!next || !run.goesOn || !handsOn(next) || !lease.isGoodFor(next)) return false;
    const lock = this.#admit(lease, next, run.takeFence());
    this.#watchdog.replan(lease);
    this.#gate.pass(key, lock);
    if (run.wantsMore) void run.refill(this.#store, lease);
    return true;
  }

  async #giveBack(lock: Lock): Promise<boolean> {
    const { lease } = lock;
    lease.startRelease();
    this.#watchdog.unwatch(lease);
    const released = this.#release(lease);
    // Whoever is next in this process asks in the same tick, so "mine is free, queue me again" is one command.
    this.#leave(lease);
    const ours = await released;
    if (!ours) lock.lose('taken');
    this.#open.delete(lease);
    return ours;
  }

  /** Answers false only when the store says that a key was not ours any more; while it does not answer, it goes on trying. */
  async #release(lock: Renewal): Promise<boolean> {
    try {
      return await this.#store.release(lock);
    } catch {
      return true;
    }
  }

  readonly #lost = (lease: Lease): void => {
    this.#watchdog.unwatch(lease);
    this.#open.delete(lease);
    this.#leave(lease);
  };

  #leave({ gated, keys }: Lease): void {
    if (gated) leaveKeys(this.#gate, keys);
  }
}

function tooSlow(sentAt: number, leaseMs: number): LockUnavailableError {
  return new LockUnavailableError(
    `The store answered after ${Math.round(now() - sentAt)} ms, when the lease of ${leaseMs} ms was over. Raise "lease", or look at the load of Redis and of this process.`,
  );
}
