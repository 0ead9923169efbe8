import {
  type Lock,
  type LockKey,
  LockOptionsError,
  type LockOptions,
  LockService,
  type WithLockOptions,
} from '../index.js';
import { booleanOption, withWait, wrongValue } from '../core/request/lock-options.js';
import { nearest } from '../errors/nearest.js';
import { httpRequests } from '../http/http-requests.js';
import { shown } from '../errors/messages.js';
import { moduleNameIn } from '../service/lock.tokens.js';
import { plainModuleOptions, resolveModuleOptions } from '../module/redis-lock.resolved-options.js';
import type { RedisLockModuleOptions } from '../module/redis-lock.options.js';
import { MemoryLockStore } from '../store/memory/memory-lock.store.js';
import { type LockSituation, SimulatedLockStore } from './simulated-lock.store.js';

/** The options of `RedisLockModule`, except those about Redis. */
export type LockTestingModuleOptions = Omit<RedisLockModuleOptions, 'connection' | 'durability'>;

const SHUTDOWN_GRACE = '3s';

const SITUATIONS: readonly string[] = ['busy', 'lost', 'down'] satisfies (keyof LockSituation)[];

/**
 * Replaces `LockService` in unit tests: the same locks, with the same rules, in memory. They exclude each other. A test
 * can simulate that a key is busy, that locks are lost, or that the store is down.
 *
 * @example
 * ```ts
 * const locks = new TestLockService();
 * locks.simulate({ busy: 'account:42' });
 * await expect(new Payout(locks).run('42')).rejects.toThrow(LockTimeoutError);
 * ```
 */
export class TestLockService extends LockService {
  readonly #simulated: SimulatedLockStore;

  /**
   * @param options the `store` defaults to a new `MemoryLockStore`, and `shutdownGrace` to 3 s: test runners allow some
   *   seconds for `app.close()`, and a test may have left a lock behind
   * @throws LockOptionsError for an unknown option or a bad value
   */
  constructor(options: LockTestingModuleOptions = {}) {
    const given = inMemory(options);
    const { callDefaults, shutdownGraceMs, exceptionFactory, store } = resolveModuleOptions({
      ...given,
      shutdownGrace: given.shutdownGrace === undefined ? SHUTDOWN_GRACE : given.shutdownGrace,
      store: given.store === undefined ? new MemoryLockStore() : given.store,
    });
    const simulated = new SimulatedLockStore(store!);
    super({
      name: moduleNameIn(given, 'name'),
      store: simulated,
      callDefaults,
      shutdownGraceMs,
      requests: httpRequests(exceptionFactory),
    });
    this.#simulated = simulated;
  }

  /**
   * Makes the locks of this service busy or lost, or its store down, from now on. Replaces what an earlier call
   * simulated.
   *
   * @throws LockOptionsError for an unknown situation, or a wrong value
   */
  simulate(situation: LockSituation): void {
    if (typeof situation !== 'object' || situation === null || Array.isArray(situation)) {
      throw new LockOptionsError(`simulate() takes an object such as { busy: 'account:42' }, not ${shown(situation)}.`);
    }
    const unknown = Object.keys(situation).find((name) => !SITUATIONS.includes(name));
    if (unknown !== undefined) {
      const meant = nearest(unknown, SITUATIONS);
      throw new LockOptionsError(
        `There is no situation "${unknown}" to simulate.${meant ? ` Did you mean "${meant}"?` : ''} ` +
          `Known ones: ${SITUATIONS.join(', ')}.`,
      );
    }
    for (const name of ['busy', 'lost'] as const) checkKeys(name, situation[name]);
    if (situation.down !== undefined) booleanOption('down', situation.down);
    this.#simulated.begin({ ...situation });
  }

  /** Ends the simulation. */
  reset(): void {
    this.simulate({});
  }

  override async withLock<T>(
    key: LockKey,
    work: (lock: Lock) => T | Promise<T>,
    options?: WithLockOptions,
  ): Promise<T> {
    return super.withLock(key, work, this.#withoutWait(key, options));
  }

  override async lock(key: LockKey, options?: LockOptions): Promise<Lock> {
    return super.lock(key, this.#withoutWait(key, options));
  }

  override async tryLock(key: LockKey, options?: LockOptions): Promise<Lock | null> {
    return super.tryLock(key, this.#withoutWait(key, options));
  }

  /** Refuses a busy key at once: a test must not wait for a key that stays busy until the test itself frees it. */
  #withoutWait<Options extends LockOptions>(key: LockKey, options: Options | undefined): Options | undefined {
    return this.#simulated.isBusy(key) ? withWait(options, 0) : options;
  }
}

/** @throws LockOptionsError for an option about Redis: it would have no effect in a test */
export function inMemory<Options extends LockTestingModuleOptions>(options: Options): Options {
  const given = plainModuleOptions(options);
  const misplaced = ['connection', 'durability'].find((name) => name in given);
  if (misplaced)
    throw new LockOptionsError(`"${misplaced}" is about Redis, but the locks of a test live in memory. Leave it out.`);
  return given;
}

/** @throws LockOptionsError unless it is a key, several, or all of them */
function checkKeys(name: string, keys: unknown): void {
  if (keys === undefined || keys === true) return;
  const areKeys = [keys].flat().every((key) => typeof key === 'string' && key !== '');
  if (!areKeys) throw wrongValue(name, keys, 'a key, an array of keys, or true');
}
