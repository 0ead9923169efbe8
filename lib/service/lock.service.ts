import type { Observable } from 'rxjs';
import { giveBack } from '../core/lock/give-back.js';
import { Lock } from '../core/lock/lock.js';
import { LockAcquirer } from '../core/lock-acquirer.js';
import { now } from '../clock/deadline.js';
import { nextTurn } from '../clock/next-turn.js';
import { LockContext, type LockNode } from '../core/nesting/lock-context.js';
import type { LockEvent } from '../core/lock/lock-event.js';
import { forceUnlock } from '../core/force-unlock.js';
import { resolveForceOptions } from '../core/request/force-options.js';
import { resolveListOptions } from '../core/list-options.js';
import type { ListOptions, LockList } from '../core/lock-list.js';
import { inspectKey, type LockInfo } from '../core/lock-info.js';
import { checkedKey, orderedKeys, type LockKey } from '../core/request/lock-key.js';
import {
  resolveCallOptions,
  type LockOptions,
  type ResolvedLockOptions,
  type WithLockOptions,
} from '../core/request/lock-options.js';
import { lockRequest, type LockRequest, type Refusal } from '../core/request/lock-request.js';
import type { Processes } from '../core/processes.js';
import { endingHealth, healthOf, type StoreHealth } from '../core/store-health.js';
import { startIfLazy } from '../core/lazy-promise.js';
import { endOf, leaveUnread } from '../core/result-work.js';
import { unreadResult } from '../core/unread-result.js';
import { observableOf } from './event-subscriber.js';
import type { LockedMethodInfo } from './locked-method-info.js';
import { CallErrors, lostError, noWork } from './call-errors.js';
import { CallWatchers } from './call-watchers.js';
import { given, NO_REQUESTS, waitSignalsWith, type RequestPort } from './request-port.js';
import { NO_REPORTS, type OperatorReports } from './lock-reporter.js';
import type { OutageReporter } from './outage-reporter.js';
import type { ForceUnlockOptions, KeyView, LockStore } from '../store/lock-store.js';

/** The parts of a `LockService`. */
export interface LockServiceParts {
  readonly name: string;
  readonly store: LockStore;
  /** The options of calls that leave them out. */
  readonly callDefaults: ResolvedLockOptions;
  readonly shutdownGraceMs: number;
  /** Reports outages: it hears which calls fail. */
  readonly outage?: OutageReporter | undefined;
  /** Hears of single locks that operators should know of. @default nobody */
  readonly reports?: OperatorReports | undefined;
  /** The requests that its callers answer. @default none */
  readonly requests?: RequestPort | undefined;
}

/**
 * Acquires locks on keys, so that work on one key runs in one place at a time, over all processes that share the store.
 */
export class LockService {
  /** The `name` of the module that this service belongs to. */
  readonly moduleName: string;
  /**
   * Reports what happens to the locks of this process: for metrics and logs. Completes when the app has shut down.
   * Costs nothing without subscribers. A subscriber sees only locks that are acquired after it subscribed.
   */
  readonly events: Observable<LockEvent>;
  /** @internal */
  readonly requests: RequestPort;
  /** Returns the holders and waiters of a key, without asking their processes. @internal */
  readonly storedKey = (key: string): Promise<KeyView | undefined> => this.#store.inspect(key);
  /** Runs work inside no lock, whatever the running async context is inside of. @internal */
  readonly outside = <T>(work: () => T): T => this.#context.outside(work);
  /** Returns a function that runs work inside the locks of the running async context, whoever calls it. @internal */
  readonly keepInside = (): (<T>(work: () => T) => T) => this.#context.keep();
  readonly #store: LockStore;
  readonly #defaults: ResolvedLockOptions;
  /** The defaults of `tryLock`, which does not wait unless a call says so. */
  readonly #tryDefaults: ResolvedLockOptions;
  /** @internal */
  readonly watchers = new CallWatchers(() => this.#context.heldKeys());
  readonly #acquirer: LockAcquirer;
  readonly #errors: CallErrors;
  readonly #waitSignals: () => LockRequest['waitSignals'];
  readonly #context = new LockContext();
  readonly #shutdownGraceMs: number;
  readonly #outage: OutageReporter | undefined;
  readonly #reports: OperatorReports;
  #methods: readonly LockedMethodInfo[] = [];
  /** The resolved options of objects that can't change, such as a decorator's. */
  readonly #resolvedFrozen = new WeakMap<object, ResolvedLockOptions>();

  /** Nest builds it: import `RedisLockModule`. @internal */
  constructor({
    name,
    store,
    callDefaults,
    shutdownGraceMs,
    outage,
    reports = NO_REPORTS,
    requests = NO_REQUESTS,
  }: LockServiceParts) {
    this.moduleName = name;
    this.#store = store;
    this.#defaults = callDefaults;
    this.#tryDefaults = { ...callDefaults, waitMs: 0 };
    this.#shutdownGraceMs = shutdownGraceMs;
    this.#outage = outage;
    this.#reports = reports;
    this.requests = requests;
    this.#errors = new CallErrors({ context: this.#context, requests, outage, isEnding: () => this.isEnding });
    this.#waitSignals = waitSignalsWith(requests);
    this.#acquirer = new LockAcquirer({
      store,
      events: this.watchers.events,
      context: this.#context,
      isAwaited: () => requests.isRunning(),
      onReply: () => outage?.succeeded(),
      onUnrenewed: (error) => outage?.unrenewed(error),
      reports,
    });
    this.events = observableOf(this.watchers.events);
  }

  /**
   * Runs the work while holding the lock, and returns the work's own value or throws its own error. The work can use
   * `lock.signal` to stop when the lock is lost, and `lock.fence` to let a database refuse a stale write.
   *
   * @throws LockTimeoutError when `wait` is over
   * @throws LockUnavailableError when the store does not answer; the work has not run
   * @throws LockLostError when the lock was lost while the work ran (its own error is the `cause`), unless `onLost:
   *   'ignore'`
   * @throws LockKeyError, LockOptionsError for a bad key or option
   */
  async withLock<T>(key: LockKey, work: (lock: Lock) => T | Promise<T>, options?: WithLockOptions): Promise<T> {
    let resolved: ResolvedLockOptions;
    let lock: Lock | Refusal;
    let settled: ((begins: boolean) => void) | undefined;
    try {
      resolved = this.#resolve(options, this.#defaults);
      if (resolved.mode !== 'read') settled = this.requests.noteWork();
      if (typeof work !== 'function') throw noWork(work);
      const waitSignals = this.#waitSignals();
      const waitsUntil = now() + resolved.waitMs;
      for (let keys = key; ; keys = lock.keys) {
        lock = await this.#acquire(keys, resolved, waitSignals);
        if (!(lock instanceof Lock)) throw this.#errors.timeout(lock);
        // The signal can abort between the grant and this line.
        if (resolved.signal?.aborted) await giveBack(lock, resolved.signal);
        // So can a parent call end.
        if (!lock.hasEndedWithParent) break;
        void lock.unlock();
        resolved = { ...resolved, waitMs: Math.max(0, waitsUntil - now()) };
      }
    } catch (error) {
      settled?.(false);
      return this.#errors.refuse(error, options?.signal);
    }
    const node = this.#context.enter(lock);
    let value: T;
    try {
      settled?.(true);
      // The process may have been stopped since it got the lock.
      lock.assertHeld();
      value = await this.#context.run(node, (lock) => startIfLazy(work(lock)));
    } catch (error) {
      await this.#leave(node, lock);
      if (!lock.loss || (resolved.onLost === 'ignore' && error !== lock.loss)) throw error;
      throw lostError(lock.loss, this.requests, error);
    }
    const end = endOf(value);
    if (end && !lock.loss) {
      void end.then(() => this.#leave(node, lock, true));
      return value;
    }
    const unread = unreadResult(value);
    await this.#leave(node, lock);
    const lost = resolved.onLost === 'throw' ? lock.loss : undefined;
    if (!lost) return unread ? unread.take() : value;
    leaveUnread(value);
    throw lostError(lost, this.requests);
  }

  /**
   * Acquires the lock; `unlock()` releases it. Prefer `withLock`, which can't forget that.
   *
   * @throws LockTimeoutError when `wait` is over
   * @throws LockUnavailableError when the store does not answer
   * @throws LockKeyError, LockOptionsError for a bad key or option
   */
  async lock(key: LockKey, options?: LockOptions): Promise<Lock> {
    try {
      const lock = await this.#acquire(key, this.#resolve(options, this.#defaults));
      if (lock instanceof Lock) return lock;
      throw this.#errors.timeout(lock);
    } catch (error) {
      return this.#errors.refuse(error, options?.signal);
    }
  }

  /**
   * Acquires the lock if the key is free; otherwise returns null. `wait` defaults to `0` here.
   *
   * @throws LockUnavailableError when the store does not answer: an outage is not "held"
   * @throws LockKeyError, LockOptionsError for a bad key or option
   */
  async tryLock(key: LockKey, options?: LockOptions): Promise<Lock | null> {
    try {
      const lock = await this.#acquire(key, this.#resolve(options, this.#tryDefaults));
      if (lock instanceof Lock) return lock;
      await nextTurn();
      return null;
    } catch (error) {
      return this.#errors.refuse(error, options?.signal);
    }
  }

  /**
   * Tells whether anybody holds the key right now. Good for a dashboard; by the time you read it, it may have changed.
   *
   * @throws LockUnavailableError when the store does not answer
   */
  async isLocked(key: string): Promise<boolean> {
    return this.#errors.replyTo(this.#store.isLocked(checkedKey(key)));
  }

  /**
   * Returns the holders and the waiters of a key, for operators and dashboards; null when the key is free.
   *
   * @throws LockUnavailableError when the store does not answer
   */
  async inspect(key: string): Promise<LockInfo | null> {
    return (await this.#errors.replyTo(inspectKey(this.#store, checkedKey(key)))) ?? null;
  }

  /**
   * Lists the keys that are held or waited for, over all processes that share the store: who holds each since when, and
   * who waits. It asks the live processes themselves and searches no keys. A key that a dead process held is listed
   * while somebody waits for it. Never rejects during an outage: `unreached` says what is missing.
   *
   * @throws LockOptionsError for an unknown option, or a wrong value
   */
  async list(options: ListOptions = {}): Promise<LockList> {
    return this.#acquirer.lister.list(resolveListOptions(options));
  }

  /**
   * Releases a key, whoever holds it; with a `token`, only if that token owns it. For operators. The old holder's
   * signal aborts at once (within lease/3 if it can't be reached), with an error that says `by` whom and for what
   * `reason`. The next waiter gets the lock, with a larger fence.
   * Both processes log who did it and why, with the key and the token.
   *
   * @returns false when nobody held it, or not that token
   * @throws LockUnavailableError when the store does not answer: not retryable, as the key may have been released, and
   *   somebody else may hold it now
   * @throws LockOptionsError for an unknown option, or a wrong value
   */
  async forceUnlock(key: string, options: ForceUnlockOptions = {}): Promise<boolean> {
    const checked = resolveForceOptions(options);
    // A second try could take the lock from the next holder.
    const released = forceUnlock(this.#store, checkedKey(key), checked);
    const tokens = await this.#errors.replyTo(released, { isRepeatable: false });
    if (!tokens) return false;
    const { token, by, reason } = checked;
    const unknown = { label: undefined, method: undefined, template: undefined };
    this.watchers.events.emit({ type: 'forced', keys: [key], ...unknown, token, tokens, by, reason });
    this.#reports.released(key, tokens, { by, reason });
    return true;
  }

  /**
   * Returns the innermost lock that this async context is inside of and still holds; with a key, the innermost one on
   * that key.
   */
  current(key?: string): Lock | undefined {
    return this.#context.current(key);
  }

  /** Runs more work inside a lock that is held already, until that has `ended`. @internal */
  goOn<T>({ lock, ended }: { readonly lock: Lock; readonly ended: Promise<void> }, work: () => T): T {
    const node = this.#context.enter(lock);
    void ended.then(() => this.#context.leave(node));
    return this.#context.run(node, work);
  }

  /**
   * Takes a turn inside a lock that is held already, for one of several tries of the same work. Returns no promise if
   * no other try has its turn. @internal
   *
   * @returns a function that ends the turn
   * @throws LockTimeoutError when `wait` is over
   */
  takeTurn(lock: Lock, options: WithLockOptions): (() => void) | Promise<() => void> {
    const { turns } = lock.nesting;
    const end = (): void => turns.leave(lock.key);
    if (!turns.tryEnter(lock.key)) return this.#waitForTurn(lock, options).then(() => end);
    turns.setStage(lock.key, 'inside');
    return end;
  }

  /** Tells whether a lock can be acquired. @internal */
  async health(): Promise<StoreHealth> {
    return this.isEnding ? endingHealth() : healthOf(this.#store);
  }

  /** Lists the methods of the app that use this service by `@WithLock`. Complete when the app has been initialised. */
  methods(): readonly LockedMethodInfo[] {
    return this.#methods;
  }

  /** @internal */
  noteMethods(methods: readonly LockedMethodInfo[]): void {
    this.#methods = Object.freeze(methods);
  }

  /** Asks all live processes that share the store, and replies to their questions. @internal */
  get processes(): Processes {
    return this.#acquirer.processes;
  }

  /** Whether its app is shutting down. @internal */
  get isEnding(): boolean {
    return this.#acquirer.shutdown.refusal !== undefined;
  }

  /** Begins to connect, so that an unreachable Redis is in the log of the boot. @internal */
  onApplicationBootstrap(): void {
    this.#store.open?.();
  }

  /** Runs when the app begins to shut down. @internal */
  onModuleDestroy(): void {
    this.#acquirer.shutdown.startGrace(this.#shutdownGraceMs);
  }

  /** Runs before Nest waits for the handlers that still run. @internal */
  beforeApplicationShutdown(): void {
    this.#acquirer.shutdown.stopGranting();
  }

  /** @internal */
  async onApplicationShutdown(): Promise<void> {
    await this.#acquirer.shutdown.end(this.#shutdownGraceMs);
    this.watchers.events.complete();
    this.#outage?.close();
  }

  async #waitForTurn(lock: Lock, options: WithLockOptions): Promise<void> {
    try {
      const waitSignals = () => given(options.signal, this.requests.waitSignal(), lock.signal);
      const request = lockRequest(this.#resolve(options, this.#defaults), { keys: lock.keys, waitSignals });
      const entry = await this.#acquirer.enterTurn(lock, request);
      if (entry !== 'turn') throw this.#errors.timeout(entry);
      lock.nesting.turns.setStage(lock.key, 'inside');
    } catch (error) {
      return this.#errors.refuse(error, options.signal);
    }
  }

  #leave(node: LockNode, lock: Lock, isStream = false): Promise<boolean> {
    this.#context.leave(node, isStream);
    return lock.unlock();
  }

  /** @throws LockOptionsError */
  #resolve(options: WithLockOptions | undefined, defaults: ResolvedLockOptions): ResolvedLockOptions {
    if (!options || defaults !== this.#defaults || !Object.isFrozen(options))
      return resolveCallOptions(options, defaults);
    let resolved = this.#resolvedFrozen.get(options);
    if (!resolved) this.#resolvedFrozen.set(options, (resolved = resolveCallOptions(options, defaults)));
    return resolved;
  }

  /** @throws LockKeyError, LockOptionsError */
  #acquire(key: LockKey, resolved: ResolvedLockOptions, waitSignals = this.#waitSignals()): Promise<Lock | Refusal> {
    const request = lockRequest(resolved, { keys: orderedKeys(key), waitSignals });
    return this.watchers.isWatching
      ? this.watchers.watch(request, (request) => this.#acquirer.acquire(request))
      : this.#acquirer.acquire(request);
  }
}
