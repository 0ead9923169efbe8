import { now } from '../clock/deadline.js';
import type { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { LockStore } from '../store/lock-store.js';
import { LeaseRegistry } from './lease/lease-registry.js';
import { Verification } from './lease/verification.js';
import { Watchdog } from './lease/watchdog.js';
import type { LockEvents } from './lock/lock-events.js';
import { Lock, type LockReports } from './lock/lock.js';
import { CALLS } from './list/calls-question.js';
import { readCallsQuestion } from './list/calls-wire.js';
import { OwnCalls } from './list/own-calls.js';
import { OwnLocks } from './list/own-locks.js';
import { LockLister } from './lock-lister.js';
import { LockReleaser } from './lock-releaser.js';
import { DeadlockDetector } from './nesting/deadlock-detector.js';
import type { LockContext } from './nesting/lock-context.js';
import { NestedAcquire } from './nesting/nested-acquire.js';
import { notReentrant, partlyHeld } from './nesting/nesting-errors.js';
import { changedRequest, usesLocalQueue, type LockRequest, type Refusal } from './request/lock-request.js';
import { answerTraces } from './holder-traces.js';
import { Processes } from './processes.js';
import { TokenSource } from './request/lock-token.js';
import { Shutdown } from './shutdown.js';
import { StoreAcquirer } from './store-acquirer.js';
import { LocalQueue } from './waiting/local-queue.js';
import { enterKey, enterKeyThen, enterKeys, type TurnOr, type WaitContext } from './waiting/local-turns.js';
import { PendingAcquires } from './waiting/pending-acquires.js';
import { listenToStore } from './waiting/listen-to-store.js';
import { StoreWait } from './waiting/store-wait.js';

interface LockAcquirerParts {
  readonly store: LockStore;
  readonly events: LockEvents;
  readonly context: LockContext;
  /** Whether a client waits for what the running async context does. */
  readonly isAwaited: () => boolean;
  /** Called when the store has answered a call, with or without a lock. */
  readonly onReply: () => void;
  /** Called when the store can't renew a lock, again and again. */
  readonly onUnrenewed: (error: LockUnavailableError) => void;
  readonly reports: LockReports;
}

/**
 * Acquires locks, and is where the parts of the core are put together. A call gets its lock from a parent call that
 * holds it already; or it gets its turn among the callers of this process, and then the lock: from the caller before
 * it, or from the store.
 */
export class LockAcquirer {
  readonly shutdown: Shutdown;
  /** The live processes that share the store. */
  readonly processes: Processes;
  readonly lister: LockLister;
  readonly #store: LockStore;
  readonly #context: LockContext;
  readonly #tokens = new TokenSource();
  readonly #localQueue = new LocalQueue<Lock>();
  readonly #tracker: DeadlockDetector;
  readonly #pendingAcquires: PendingAcquires;
  readonly #releaser: LockReleaser;
  readonly #storeAcquirer: StoreAcquirer;

  constructor({ store, events, context, isAwaited, onReply, onUnrenewed, reports }: LockAcquirerParts) {
    const localQueue = this.#localQueue;
    const processes = (this.processes = new Processes(store, this.#tokens.name));
    const tokens = this.#tokens;
    const tracker = new DeadlockDetector(context);
    const watchdog = new Watchdog(store, onUnrenewed);
    const pendingAcquires = new PendingAcquires(store, localQueue);
    const verification = new Verification(() => void watchdog.verify([...leases]));
    const resync = (): void => {
      pendingAcquires.wakeAll();
      verification.request();
    };
    const leases = new LeaseRegistry(resync);
    const own = { leases, localQueue, pendingAcquires };
    this.lister = new LockLister({ store, processes, ownLocks: new OwnLocks(own) });
    const ownCalls = new OwnCalls({ ...own, process: tokens.holder });
    processes.on(CALLS, (about) => ownCalls.answer(readCallsQuestion(about)));
    const releaser = new LockReleaser({ store, events, watchdog, leases, localQueue, pendingAcquires, reports });
    const shutdown = new Shutdown({
      leases,
      isAwaited,
      failWaiters: (refusal: LockUnavailableError) => {
        localQueue.failAll(refusal);
        pendingAcquires.failAll(refusal);
      },
      close: async () => {
        await releaser.releaseAll();
        watchdog.stop();
        verification.stop();
        leases.stop();
        releaser.stop();
        await store.close();
      },
    });
    const storeWait = new StoreWait({ store, localQueue, pendingAcquires, tracker });
    answerTraces(processes, (token) => leases.get(token)?.details?.traceparent);
    this.shutdown = shutdown;
    this.#store = store;
    this.#context = context;
    this.#tracker = tracker;
    this.#pendingAcquires = pendingAcquires;
    this.#releaser = releaser;
    this.#storeAcquirer = new StoreAcquirer({
      store,
      tokens,
      watchdog,
      leases,
      localQueue,
      pendingAcquires,
      storeWait,
      releaser,
      shutdown,
      onReply,
    });
    listenToStore(store, {
      source: tokens.name,
      pendingAcquires,
      leases,
      watchdog,
      answer: (question) => processes.answer(question),
      resync,
    });
  }

  /**
   * Acquires the keys of the request, waiting as long as it allows.
   *
   * @throws LockOptionsError when the locks of parent calls do not allow what the call asks for
   * @throws LockUnavailableError, or the reason of a signal that aborts the wait
   */
  acquire(request: LockRequest): Promise<Lock | Refusal> {
    const parents = this.#context.holding(request.keys);
    return parents ? this.#acquireNested(parents, request) : this.#acquireOutermost(request);
  }

  /**
   * Acquires keys that parent calls hold; and begins again, with what is left of its wait, when one of them has ended
   * meanwhile.
   */
  async #acquireNested(parents: ReadonlyMap<string, Lock>, request: LockRequest): Promise<Lock | Refusal> {
    const startedAt = now();
    if (!request.reentrant) throw notReentrant(request.keys);
    if (parents.size < request.keys.length) throw partlyHeld(request.keys, parents);
    const surroundings = { holder: this.#tokens.holder, issuer: this.#releaser, tracker: this.#tracker };
    const lock = await new NestedAcquire(parents, request, surroundings).run();
    if (lock !== 'parent-ended') return lock;
    const { waitMs } = request;
    const again = await this.acquire(changedRequest(request, { waitMs: Math.max(0, startedAt + waitMs - now()) }));
    return again instanceof Lock ? again : { ...again, waitMs, waitedMs: now() - startedAt };
  }

  /** Waits for a turn inside a lock that is held. */
  enterTurn(lock: Lock, request: LockRequest): Promise<'turn' | Refusal> {
    const wait = { startedAt: now(), holder: this.#tokens.holder, tracker: this.#tracker };
    return enterKey(lock.key, lock.nesting.turns, request, wait);
  }

  #acquireOutermost(request: LockRequest): Promise<Lock | Refusal> {
    const startedAt = now();
    if (request.signal?.aborted) return Promise.reject(request.signal.reason);
    if (this.shutdown.refusal) return this.shutdown.refuse(request);
    const [key] = request.keys;
    const isSingle = request.keys.length === 1;
    if (!usesLocalQueue(request) || (isSingle && this.#localQueue.tryEnter(key!)))
      return this.#storeAcquirer.acquire(request, startedAt, startedAt);
    const wait = { startedAt, holder: this.#tokens.holder, tracker: this.#tracker };
    if (isSingle && this.#mayGetLockDirectly(request)) {
      // Not at once: the caller before is still leaving.
      const takeTurn = () => Promise.resolve().then(() => this.#acquireInTurn(request, startedAt));
      return enterKeyThen(takeTurn, key!, this.#localQueue, request, wait);
    }
    const entered = isSingle ? enterKey(key!, this.#localQueue, request, wait) : this.#enterAll(request, wait);
    return entered.then((entry) => (entry === 'turn' ? this.#acquireInTurn(request, startedAt) : entry));
  }

  /** Waits for the turns of several keys, and has none of them while it is in doubt whether all can be reached. */
  #enterAll(request: LockRequest, wait: WaitContext): Promise<TurnOr<Lock> | Refusal> {
    const enter = () => enterKeys(() => this.#localQueue, request, wait);
    const reached = this.#store.reach?.(request.keys);
    if (!reached) return enter();
    return reached.then(() => {
      request.signal?.throwIfAborted();
      return enter();
    });
  }

  /**
   * Whether the result of the wait for a turn may be a lock that is handed off. It reaches its caller one promise
   * sooner then: too soon for events, which tell of the release first. And a call inside others is tracked until it has
   * its turn, no longer.
   */
  #mayGetLockDirectly({ onWait }: LockRequest): boolean {
    return !onWait && !this.#context.innermost();
  }

  /** Acquires a lock whose turn may have come after a while. */
  #acquireInTurn(request: LockRequest, startedAt: number): Promise<Lock | Refusal> {
    if (!this.shutdown.refusal) return this.#storeAcquirer.acquire(request, startedAt, now());
    this.#pendingAcquires.leaveLocalQueue(request.keys);
    throw this.shutdown.refusal;
  }
}
