import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockOptionsError, type RedisLockModuleOptions } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { deferred, type Deferred } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

type Task = () => Promise<void>;

/** As fastq and p-queue: the next task starts where the one before has ended, so in its async context. */
class Queue {
  readonly #tasks: Task[] = [];
  #isBusy = false;

  push(task: Task): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#tasks.push(() => task().then(resolve, reject));
      if (!this.#isBusy) void this.#next();
    });
  }

  async #next(): Promise<void> {
    const task = this.#tasks.shift();
    this.#isBusy = task !== undefined;
    if (!task) return;
    await task();
    await this.#next();
  }
}

let locks: ClosableLockService;

const start = (options: RedisLockModuleOptions = {}) =>
  (locks = lockService(new MemoryLockStore(), { wait: '5s', shutdownGrace: 0, ...options }));

afterEach(() => locks.close());

describe('work that a queue starts inside of a holder', () => {
  let queue: Queue;
  let inside: string[];
  let held: Deferred;
  let first: Deferred;

  beforeEach(() => {
    queue = new Queue();
    inside = [];
    [held, first] = [deferred(), deferred()];
  });

  /**
   * The holder puts a task into the queue, and stays inside until `until` is over; the stranger's task comes behind it.
   */
  async function together(
    task: (work: Task) => Task,
    until: (stranger: Promise<void>) => Promise<unknown>,
  ): Promise<void> {
    const queued = deferred<{ stranger: Promise<void> }>();
    const holder = locks.withLock('k', async () => {
      held.resolve();
      const ended = queue.push(() => first.promise);
      const { stranger } = await queued.promise;
      first.resolve();
      await ended;
      await until(stranger);
      inside.push('holder leaves');
    });
    await held.promise;
    const stranger = queue.push(task(() => locks.withLock('k', () => void inside.push('stranger'))));
    queued.resolve({ stranger });
    await Promise.all([holder, stranger]);
  }

  it('work that a queue starts inside of a holder waits for it when it is bound to its own context', async () => {
    start();
    const bound = (work: Task): Task => {
      const run = AsyncLocalStorage.snapshot();
      return () => run(work);
    };
    await together(bound, async () => undefined);
    expect(inside).toEqual(['holder leaves', 'stranger']);
  });

  it('work that a queue starts inside of a holder is refused where the module says reentrant: false', async () => {
    start({ reentrant: false });
    await expect(
      together(
        (work) => work,
        (stranger) => stranger.catch(() => undefined),
      ),
    ).rejects.toBeInstanceOf(LockOptionsError);
    expect(inside).toEqual(['holder leaves']);
  });
});

describe('reentrant: false', () => {
  beforeEach(() => void start({ reentrant: false }));

  it('a module with reentrant: false refuses a nested call that does not say', async () => {
    await expect(locks.withLock('k', () => locks.withLock('k', () => 'nested'))).rejects.toBeInstanceOf(
      LockOptionsError,
    );
  });

  it('a module with reentrant: false lets in a nested call that says reentrant: true', async () => {
    expect(await locks.withLock('k', () => locks.withLock('k', () => 'nested', { reentrant: true }))).toBe('nested');
  });
});

it('a module that does not say lets nested calls in, but for those with reentrant: false', async () => {
  start();
  expect(await locks.withLock('k', () => locks.withLock('k', () => 'nested'))).toBe('nested');
  await expect(
    locks.withLock('k', () => locks.withLock('k', () => 'nested', { reentrant: false })),
  ).rejects.toBeInstanceOf(LockOptionsError);
});
