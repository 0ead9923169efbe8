import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it } from '@jest/globals';
import { isLockError, type Lock, type LockOptions } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { turn } from '../support/deferred.js';
import { Random } from '../support/model/random.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

const KEYS = ['a', 'b'];
const MODES = ['exclusive', 'write', 'read', 'read'] as const;
const PROGRAMS = 150;

/** A call whose work runs. */
interface Inside {
  readonly lock: Lock;
  readonly parent: Inside | undefined;
  /** Its own wish, or a `downgrade()` that has begun, makes it a reader. */
  reads: boolean;
}

/** Calls that nest in each other at random: one after the other, side by side, or forgotten by their parent calls. */
class NestedProgram {
  readonly meetings: string[] = [];
  readonly #locks: ClosableLockService;
  readonly #random: Random;
  readonly #running = new AsyncLocalStorage<Inside>();
  readonly #inside = new Set<Inside>();
  readonly #forgotten: Promise<unknown>[] = [];

  constructor(locks: ClosableLockService, seed: number) {
    this.#locks = locks;
    this.#random = new Random(seed);
  }

  async run(): Promise<void> {
    await Promise.all([this.#call(0), this.#call(0)]);
    while (this.#forgotten.length > 0) await Promise.all(this.#forgotten.splice(0));
  }

  #call(depth: number): Promise<void> {
    const parent = this.#running.getStore();
    const keys = parent?.lock.keys ?? this.#random.pick([KEYS, ['a'], ['b']]);
    const mode = this.#random.pick(MODES);
    const options: LockOptions = { mode, wait: Infinity };
    return this.#locks
      .withLock(
        [this.#random.pick(keys)],
        (lock) => this.#work({ lock, parent, reads: mode === 'read' }, depth),
        options,
      )
      .catch((error: unknown) => expect(isLockError(error)).toBe(true));
  }

  async #work(self: Inside, depth: number): Promise<void> {
    this.#inside.add(self);
    try {
      await this.#running.run(self, () => this.#nest(self, depth));
    } finally {
      this.#inside.delete(self);
    }
  }

  async #nest(self: Inside, depth: number): Promise<void> {
    const beside: Promise<unknown>[] = [];
    for (let left = depth < 3 ? this.#random.below(6) : 0; left > 0; left--) {
      this.#look(self);
      const call = this.#call(depth + 1);
      const how = this.#random.below(3);
      if (how === 0) await call;
      else (how === 1 ? beside : this.#forgotten).push(call);
      await this.#pause();
      if (this.#random.below(3) === 0) await this.#downgrade(self);
    }
    await Promise.all(beside);
    await this.#pause();
    this.#look(self);
  }

  async #pause(): Promise<void> {
    for (let turns = this.#random.below(4); turns > 0; turns--) await turn();
  }

  async #downgrade(self: Inside): Promise<void> {
    const { reads } = self;
    self.reads = true;
    await self.lock.downgrade().catch(() => (self.reads = reads));
  }

  /** Notes who is inside beside this one, and may not be. */
  #look(self: Inside): void {
    for (const other of this.#inside) {
      const key = self.lock.keys.find((key) => other.lock.keys.includes(key));
      if (!key || isWithin(self, other) || isWithin(other, self) || (self.reads && other.reads)) continue;
      if (self.lock.isHeld && other.lock.isHeld) this.meetings.push(`${key}: ${self.lock.mode}, ${other.lock.mode}`);
    }
  }
}

function isWithin(one: Inside, other: Inside): boolean {
  return one === other || (one.parent !== undefined && isWithin(one.parent, other));
}

it('nested calls that may not be inside together never are, and all of them end, whatever is forgotten', async () => {
  const locks = lockService(new MemoryLockStore(), { shutdownGrace: 0 });
  for (let seed = 1; seed <= PROGRAMS; seed++) {
    const program = new NestedProgram(locks, seed);
    await program.run();
    expect({ seed, meetings: program.meetings }).toEqual({ seed, meetings: [] });
  }
  await locks.close();
}, 60_000);
