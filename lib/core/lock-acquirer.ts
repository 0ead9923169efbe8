import { setMaxListeners } from 'node:events';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { AcquireCommand, Granted, Held, LockStore } from '../store/lock-store.js';
import { now } from '../clock/deadline.js';
import { enterKeys, leaveKeys } from './enter-keys.js';
import { KeyGate } from './key-gate.js';
import { Lease } from './lease.js';
import { Lock } from './lock.js';
import { refusal, type LockRequest, type Refusal } from './lock-request.js';
import { holderOf, TokenSource } from './lock-token.js';
import { OpenLeases } from './open-leases.js';
import { pollDelayMs } from './poll-delay.js';
import { waitFor } from '../clock/wait-for.js';
import { Watchdog } from './watchdog.js';

/** Gets locks and gives them back. The one loop that waits is here. */
export class LockAcquirer {
  readonly #store: LockStore;
  readonly #watchdog: Watchdog;
  readonly #gate = new KeyGate();
  readonly #tokens = new TokenSource();
  readonly #open = new OpenLeases();
  readonly #closing = new AbortController();

  constructor(store: LockStore) {
    this.#store = store;
    this.#watchdog = new Watchdog(store);
    setMaxListeners(0, this.#closing.signal);
  }

  /**
   * Takes the keys of the request, waiting as long as it allows.
   *
   * @throws LockUnavailableError, or the reason of a signal that aborts the wait
   */
  async acquire(request: LockRequest): Promise<Lock | Refusal> {
    const startedAt = now();
    request.signal?.throwIfAborted();
    const refused = await enterKeys(this.#gate, request, { startedAt, holder: this.#tokens.holder, closing: this.#closing.signal });
    if (refused) return refused;
    try {
      this.#closing.signal.throwIfAborted();
      const answer = await this.#open.asking(this.#ask(request, startedAt));
      if (!(answer instanceof Lock)) leaveKeys(this.#gate, request.keys);
      return answer;
    } catch (error) {
      leaveKeys(this.#gate, request.keys);
      throw error;
    }
  }

  /** Takes keys that `outer` holds already: asks the store nothing, and waits only for siblings nested in `outer` too. */
  async acquireWithin(outer: Lock, request: LockRequest): Promise<Lock | Refusal> {
    const startedAt = now();
    request.signal?.throwIfAborted();
    const refused = await enterKeys(outer.inner, request, { startedAt, holder: this.#tokens.holder });
    if (refused) return refused;
    if (outer.isHeld) {
      for (const key of request.keys) outer.inner.setFront(key, 'inside');
      return new Lock(request.keys, outer.lease, this, outer);
    }
    // The outer call ended while this one queued behind a sibling: it belongs to the next one out, or stands on its own.
    leaveKeys(outer.inner, request.keys);
    const rest = { ...request, waitMs: Math.max(0, startedAt + request.waitMs - now()) };
    return outer.outer ? this.acquireWithin(outer.outer, rest) : this.acquire(rest);
  }

  /** Gives a lock back. Never rejects: the store itself goes on trying when it can't be reached. */
  async unlock({ lease, keys, outer, lost }: Lock): Promise<boolean> {
    if (outer) {
      leaveKeys(outer.inner, keys);
      return !lost;
    }
    if (!lease.startRelease()) {
      void this.#release(lease);
      return false;
    }
    this.#watchdog.unwatch(lease);
    const ours = await this.#release(lease);
    if (!ours) lease.foundTaken();
    this.#forget(lease);
    return ours;
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
    this.#closing.abort(new LockUnavailableError('This app is shutting down and takes no new locks. Ask another node.'));
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
    const { keys, leaseMs, maxWaiters } = request;
    const until = startedAt + request.waitMs;
    for (let attempt = 0; ; attempt++) {
      const token = this.#tokens.next();
      const sentAt = now();
      const answer = await this.#askStore({ keys, token, leaseMs });
      if (answer.granted) {
        const lease = new Lease(keys, token, answer.fence, sentAt, request);
        const { signal: closing } = this.#closing;
        if (lease.isHeld && !request.signal?.aborted && !closing.aborted) return this.#begin(lease);
        // It came too late to be of use: the lease is over already, or the caller has gone, or the app is going.
        await this.#release(lease);
        request.signal?.throwIfAborted();
        closing.throwIfAborted();
      }
      const holder = answer.granted ? undefined : holderOf(answer.holder);
      if (now() >= until) {
        if (answer.granted) throw tooSlow(sentAt, leaseMs);
        return refusal('held', request, startedAt, holder);
      }
      if (maxWaiters === 0) return refusal('too-many-waiters', request, startedAt, holder);
      for (const key of keys) this.#gate.setFront(key, 'waiting');
      const delay = pollDelayMs(attempt, answer.granted ? 0 : answer.leaseLeftMs);
      await waitFor(Math.min(now() + delay, until), [...request.waitSignals(), this.#closing.signal]);
    }
  }

  async #askStore(command: AcquireCommand): Promise<Granted | Held> {
    try {
      return await this.#store.acquire(command);
    } catch (error) {
      for (const key of command.keys) this.#gate.fail(key, error as Error);
      throw error;
    }
  }

  /** Answers false only when the store says that a key was not ours any more. */
  async #release(lease: Lease): Promise<boolean> {
    try {
      return await this.#store.release(lease);
    } catch {
      return true;
    }
  }

  #begin(lease: Lease): Lock {
    lease.onLost = () => {
      this.#watchdog.unwatch(lease);
      this.#forget(lease);
    };
    this.#open.add(lease);
    this.#watchdog.watch(lease);
    for (const key of lease.keys) this.#gate.setFront(key, 'inside');
    return new Lock(lease.keys, lease, this);
  }

  #forget(lease: Lease): void {
    this.#open.delete(lease);
    leaveKeys(this.#gate, lease.keys);
  }
}

function tooSlow(sentAt: number, leaseMs: number): LockUnavailableError {
  return new LockUnavailableError(
    `The store answered after ${Math.round(now() - sentAt)} ms, when the lease of ${leaseMs} ms was over. Raise "lease", or look at the load of Redis and of this process.`,
  );
}
