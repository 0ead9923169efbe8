import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { CurrentLock, type Lock, LockLostError, LockService, type LockTimeoutError, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
import {
  combineLatest,
  finalize,
  from,
  isObservable,
  lastValueFrom,
  Observable,
  retry,
  Subject,
  switchMap,
  take,
  throwError,
  timeout,
  TimeoutError,
  toArray,
} from 'rxjs';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';

const ran: string[] = [];
/** What the bodies emit. */
let source: Subject<number>;
/** What they do at their end. */
let cleanUp: (lock: Lock | undefined) => void;
/** Whether it is an Observable inside them that does it. */
let cleansUpInside: boolean;
let current: () => Lock | undefined;
let left: Deferred;

function emitted(): Observable<number> {
  const lock = current();
  const cleaning = source.pipe(finalize(() => cleanUp(lock)));
  return cleansUpInside ? from(turn()).pipe(switchMap(() => cleaning)) : cleaning;
}

async function* numbers(): AsyncGenerator<number> {
  try {
    yield 1;
    expect(current()?.key).toBe('feed');
    yield 2;
  } finally {
    left.resolve();
  }
}

/** An async iterator that an app has written as a class. */
class Pages implements AsyncIterableIterator<number> {
  readonly #numbers = numbers();

  next(): Promise<IteratorResult<number>> {
    return this.#numbers.next();
  }

  return(): Promise<IteratorResult<number>> {
    return this.#numbers.return(undefined);
  }

  throw(error: unknown): Promise<IteratorResult<number>> {
    return this.#numbers.throw(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

/** Whoever takes two of these does not want a third to be made. */
function* counting(): Generator<number> {
  for (let number = 1; number <= 1000; number++) {
    ran.push(`made ${number}`);
    yield number;
  }
}

const cov_1 = () => ({ f: [0], s: [0] });

/** Rejects when the lock is lost, as what gets its signal. */
const untilLost = (lock: Lock): Promise<never> =>
  new Promise((_, reject) => lock.signal.addEventListener('abort', () => reject(new Error('given up'))));

@Injectable()
class Feeds {
  @WithLock('feed')
  declared(): Observable<number> {
    ran.push('declared');
    expect(current()?.key).toBe('feed');
    return new Observable((subscriber) => {
      expect(current()?.key).toBe('feed');
      return emitted().subscribe(subscriber);
    });
  }

  /** As the promise of an SDK, which has an iterator of its own. */
  @WithLock('feed')
  answering(answer: unknown) {
    return Object.assign(Promise.resolve(answer), { [Symbol.asyncIterator]: () => [1, 2][Symbol.iterator]() });
  }

  @WithLock('feed')
  undeclared() {
    ran.push('undeclared');
    return emitted();
  }

  @WithLock('feed')
  async promised() {
    ran.push('promised');
    return emitted();
  }

  @WithLock('feed')
  async given(iterator: AsyncIterableIterator<number>) {
    return iterator;
  }

  @WithLock('feed', { lease: '300ms' })
  async givenForShort(iterator: AsyncIterableIterator<number>) {
    return iterator;
  }

  @WithLock('feed', { lease: '300ms' })
  passedOnForShort(iterator: AsyncIterableIterator<number>): AsyncIterableIterator<number> {
    return iterator;
  }

  @WithLock('feed')
  async givenBack(@CurrentLock() lock?: Lock) {
    await lock!.unlock();
    return source.asObservable();
  }

  @WithLock('feed')
  async *givingBack(@CurrentLock() lock?: Lock) {
    yield 1;
    await lock!.unlock();
    yield 2;
    yield 3;
  }

  @WithLock('feed')
  async *givingUp(@CurrentLock() lock?: Lock) {
    yield 1;
    ran.push('waits');
    await untilLost(lock!);
  }

  @WithLock('feed')
  givingUpAtOnce(@CurrentLock() lock?: Lock): Observable<never> {
    const failing = new Subject<never>();
    untilLost(lock!).catch((error: unknown) => failing.error(error));
    lock!.signal.addEventListener('abort', () => failing.error(new Error('given up')));
    return failing;
  }

  @WithLock('feed')
  async *yieldingAtItsEnd() {
    try {
      yield 1;
    } finally {
      yield 'end';
    }
  }

  @WithLock('outer')
  async around() {
    return this.promised();
  }

  @WithLock('outer')
  async aroundIterator() {
    return this.promisedIterator();
  }

  @WithLock('outer')
  async aroundDeclared() {
    return this.declared();
  }

  @WithLock('outer')
  async aroundGenerator() {
    return this.generator();
  }

  @WithLock('feed', { lease: 400 })
  async promisedForAMoment() {
    return source.asObservable();
  }

  @WithLock('feed')
  pages(): Pages {
    return new Pages();
  }

  @WithLock('feed')
  async *generator() {
    ran.push('generator');
    yield* numbers();
  }

  @WithLock('feed')
  async promisedIterator() {
    return numbers();
  }

  @WithLock('feed')
  passedOn(): AsyncGenerator<number> {
    return numbers();
  }

  @WithLock('feed', { wait: 0 })
  passedOnOwn(): AsyncIterableIterator<number> {
    return this.own();
  }

  /** As Istanbul makes it. */
  @WithLock('feed', { wait: 0 })
  passedOnCounted(): AsyncIterableIterator<number> {
    cov_1().f[0]!++;
    cov_1().s[0]!++;
    return this.own();
  }

  async *own() {
    ran.push('own');
    yield* numbers();
  }

  @WithLock('feed', { wait: 0 })
  passedOnAtOnce(): AsyncIterableIterator<number> {
    return numbers();
  }

  @WithLock('feed', { onTimeout: 'skip', wait: 0 })
  skipping(): Observable<number> {
    return source;
  }

  @WithLock('feed', { onTimeout: ({ error }) => error.code, wait: 0 })
  async *explaining(): AsyncGenerator<unknown> {
    yield* numbers();
  }

  @WithLock('feed')
  allAtOnce(): Observable<number> {
    return from(counting());
  }

  @WithLock('feed', { onLost: 'ignore' })
  careless(@CurrentLock() _lock?: Lock): Observable<number> {
    return source;
  }
}

let module: TestingModule;
let feeds: Feeds;
let locks: LockService;
let store: MemoryLockStore;

beforeEach(async () => {
  ran.length = 0;
  source = new Subject();
  cleanUp = () => undefined;
  cleansUpInside = false;
  left = deferred();
  store = new MemoryLockStore();
  module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot({ store })],
    providers: [Feeds],
  }).compile();
  feeds = module.get(Feeds);
  locks = module.get(LockService);
  current = () => locks.current();
});

afterEach(() => module.close());

const isFree = async () => !(await locks.isLocked('feed'));
const hasReader = () => until(() => source.observed);

/** What a stream says, in one list. */
function heard(stream: Observable<unknown>) {
  const said: unknown[] = [];
  const ended = deferred();
  const subscription = stream.subscribe({
    next: (value) => said.push(value),
    error: (error: { code?: string; message: string }) => ended.resolve(void said.push(error.code ?? error.message)),
    complete: () => ended.resolve(void said.push('complete')),
  });
  return { said, ended: ended.promise, subscription };
}

it('a stream that gives all at once gives no more when its reader has left', async () => {
  const { said, ended } = heard(feeds.allAtOnce().pipe(take(2)));
  await ended;
  expect(said).toEqual([1, 2, 'complete']);
  expect(ran).toEqual(['made 1', 'made 2']);
  await until(isFree);
});

it('a stream ends, and frees its key, though the clock of a test stands still', async () => {
  jest.useFakeTimers();
  const { said, ended } = heard(feeds.allAtOnce());
  await ended;
  const wasFree = await isFree();
  jest.useRealTimers();
  expect(said.at(-1)).toBe('complete');
  expect(wasFree).toBe(true);
});

const OBSERVABLES: [string, () => Promise<Observable<unknown>>][] = [
  ['an Observable, as it is declared', async () => feeds.declared()],
  ['an Observable that is not declared', async () => feeds.undeclared()],
  ['a promise of an Observable', () => feeds.promised()],
];

describe.each(OBSERVABLES)('a method that returns %s holds its lock', (_what, call) => {
  it('a method holds its lock until its Observable completes, and says so when the key is free', async () => {
    const { said, ended } = heard(await call());
    await hasReader();
    source.next(1);
    expect(await isFree()).toBe(false);
    source.complete();
    await ended;
    expect(await isFree()).toBe(true);
    expect(said).toEqual([1, 'complete']);
  });

  it('a method holds its lock until its Observable fails, with its own error', async () => {
    const { said, ended } = heard(await call());
    await hasReader();
    expect(await isFree()).toBe(false);
    source.error(new Error('no more'));
    await ended;
    expect(await isFree()).toBe(true);
    expect(said).toEqual(['no more']);
  });

  it('a method holds its lock until nobody is subscribed to its Observable any more', async () => {
    const { subscription } = heard(await call());
    await hasReader();
    expect(await isFree()).toBe(false);
    subscription.unsubscribe();
    expect(source.observed).toBe(false);
    await until(isFree);
  });

  const ways = ['complete', 'error', 'leave'] as const;
  it.each(ways.flatMap((way) => [['itself', way] as const, ['inside', way] as const]))(
    'a method holds its lock until its Observable has cleaned up (%s, %s)',
    async (where, way) => {
      const held: unknown[] = [];
      cleansUpInside = where === 'inside';
      cleanUp = (lock) => held.push(lock?.isHeld);
      const { subscription } = heard(await call());
      await hasReader();
      if (way === 'leave') subscription.unsubscribe();
      else source[way](new Error('no more'));
      expect(held).toEqual([true]);
      await until(isFree);
    },
  );

  it('a method does not hold its lock for a reader that has gone before it reads', async () => {
    const { said, ended } = heard(combineLatest([throwError(() => new Error('of another')), await call()]));
    await ended;
    await until(isFree);
    expect([said, source.observed]).toEqual([['of another'], false]);
  });

  it('an Observable ends with LockLostError when its lock is lost', async () => {
    const { said, ended } = heard(await call());
    await hasReader();
    source.next(1);
    await locks.forceUnlock('feed');
    await ended;
    expect(said).toEqual([1, 'LOCK_LOST']);
    expect(source.observed).toBe(false);
  });
});

describe('a method declared to return an Observable', () => {
  it('a method that is declared to return an Observable runs when somebody subscribes, once for each', async () => {
    const stream = feeds.declared();
    await turn();
    expect(ran).toEqual([]);

    const [one, two] = [heard(stream), heard(stream)];
    await hasReader();
    expect(ran).toEqual(['declared']);
    const first = source;
    source = new Subject();
    first.complete();
    await one.ended;
    await hasReader();
    expect(ran).toEqual(['declared', 'declared']);
    source.complete();
    await two.ended;
  });

  it('a method that is declared to return an Observable never runs when its subscriber leaves early', async () => {
    const held = await locks.lock('feed');
    const { subscription } = heard(feeds.declared());
    await until(
      async () =>
        (await locks.lock('feed', { maxWaiters: 1, wait: 1 }).catch(({ reason }: LockTimeoutError) => reason)) ===
        'too-many-waiters',
    );
    subscription.unsubscribe();
    await held.unlock();
    await using again = await locks.lock('feed', { wait: '1s' });
    expect([again.isHeld, ran]).toEqual([true, []]);
  });

  it('a skipped Observable has the value undefined, or what onTimeout returns', async () => {
    await using held = await locks.lock('feed');
    expect(await lastValueFrom(feeds.skipping().pipe(toArray()))).toEqual([undefined]);
    expect(await feeds.explaining().next()).toEqual({ done: false, value: 'LOCK_TIMEOUT' });
    held.assertHeld();
  });

  it("an Observable goes on without its lock with onLost: 'ignore'", async () => {
    const { said, ended } = heard(feeds.careless());
    await hasReader();
    await locks.forceUnlock('feed');
    source.next(1);
    source.complete();
    await ended;
    expect(said).toEqual([1, 'complete']);
  });
});

describe('an Observable that a promise has brought', () => {
  it('a promised Observable does not hold the lock for ever; a late reader gets LockLostError', async () => {
    const stream = await feeds.promisedForAMoment();
    await until(isFree);
    await expect(lastValueFrom(stream)).rejects.toBeInstanceOf(LockLostError);
    expect(source.observed).toBe(false);
  });

  it('a promised Observable is not read a second time without the lock', async () => {
    const stream = await feeds.promised();
    const { ended } = heard(stream);
    source.complete();
    await ended;
    source = new Subject();
    await expect(lastValueFrom(stream)).rejects.toBeInstanceOf(LockLostError);
  });

  it('a promised Observable that is read again and again, at once, leaves time for others', async () => {
    const stream = await feeds.promised();
    const { ended } = heard(stream);
    source.complete();
    await ended;
    await expect(lastValueFrom(stream.pipe(retry(), timeout(50)))).rejects.toBeInstanceOf(TimeoutError);
  });

  it('a promised Observable can be read by several, and holds the lock until the last has left', async () => {
    const stream = await feeds.promised();
    const [one, two] = [heard(stream), heard(stream)];
    one.subscription.unsubscribe();
    await turn();
    expect(await isFree()).toBe(false);
    two.subscription.unsubscribe();
    await until(isFree);
  });
});

const ITERATORS: [string, () => Promise<AsyncIterator<number> & AsyncIterable<number>>][] = [
  ['an async generator', async () => feeds.generator()],
  ['a class that is an async iterator', async () => feeds.pages()],
  ['a promise of an async iterator', () => feeds.promisedIterator()],
  [
    'an async iterator of which neither type nor source tells',
    async () => (feeds.passedOn() as AsyncIterable<number>)[Symbol.asyncIterator]() as AsyncGenerator<number>,
  ],
];

describe.each(ITERATORS)('a method that returns %s holds its lock', (_what, call) => {
  it('a method holds its lock until its iterator is done', async () => {
    const iterator = await call();
    expect(await iterator.next()).toEqual({ done: false, value: 1 });
    expect(await isFree()).toBe(false);
    expect(await iterator.next()).toEqual({ done: false, value: 2 });
    expect(await isFree()).toBe(false);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(await isFree()).toBe(true);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it('a method holds its lock until the loop that reads its iterator is left', async () => {
    for await (const value of await call()) {
      expect([value, await isFree()]).toEqual([1, false]);
      break;
    }
    await left.promise;
    expect(await isFree()).toBe(true);
  });

  it('a method holds its lock until its iterator fails', async () => {
    const iterator = await call();
    await iterator.next();
    await expect(iterator.throw!(new Error('no more'))).rejects.toThrow('no more');
    await left.promise;
    expect(await isFree()).toBe(true);
  });

  it('an iterator fails with LockLostError when its lock is lost', async () => {
    const iterator = await call();
    await iterator.next();
    await locks.forceUnlock('feed');
    await expect(iterator.next()).rejects.toBeInstanceOf(LockLostError);
    await left.promise;
  });

  it('an iterator whose lock is lost can be left: who leaves may not listen to errors', async () => {
    const iterator = await call();
    await iterator.next();
    await locks.forceUnlock('feed');
    expect(await iterator.return!()).toMatchObject({ done: true });
    await left.promise;
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });
});

it('an iterator that gives up because its lock is lost fails with LockLostError', async () => {
  const iterator = feeds.givingUp();
  await iterator.next();
  const next = iterator.next();
  await until(() => ran.includes('waits'));
  await locks.forceUnlock('feed');
  await expect(next).rejects.toMatchObject({ code: 'LOCK_LOST', cause: { message: 'given up' } });
});

it('an Observable that gives up because its lock is lost, before anybody hears of that, fails with LockLostError', async () => {
  const failed = lastValueFrom(feeds.givingUpAtOnce());
  failed.catch(() => undefined);
  await until(async () => !(await isFree()));
  await locks.forceUnlock('feed');
  await expect(failed).rejects.toMatchObject({ code: 'LOCK_LOST' });
});

it.each(['promised', 'promisedIterator'] as const)(
  'a call that loses its lock says so, also when it returns the stream of a method with a lock: %s',
  async (name) => {
    const call = locks.withLock('outer', async () => {
      const stream: unknown = await feeds[name]();
      await locks.forceUnlock('outer');
      return stream;
    });
    await expect(call).rejects.toHaveProperty('code', 'LOCK_LOST');
    await until(isFree);
  },
);

it.each(['around', 'aroundIterator'] as const)(
  'a stream that its caller refuses to have read, because its own lock is lost, lets go of its lock, too: %s',
  async (name) => {
    const stream: unknown = await feeds[name]();
    await locks.forceUnlock('outer');
    const reading = isObservable(stream) ? lastValueFrom(stream) : (stream as AsyncIterator<number>).next();
    await expect(reading).rejects.toHaveProperty('code', 'LOCK_LOST');
    await until(isFree);
  },
);

describe('a stream whose lock is gone says so when only the release finds it out', () => {
  /** Nobody is told. */
  async function takeAway(): Promise<void> {
    const { holder } = (await locks.inspect('feed'))!;
    expect(await store.release({ keys: ['feed'], token: holder.token, leaseMs: 1 })).toBe(true);
  }

  it('a stream that is an Observable', async () => {
    const { said, ended } = heard(feeds.declared());
    await hasReader();
    await takeAway();
    source.complete();
    await ended;
    expect(said).toEqual(['LOCK_LOST']);
  });

  it('a stream that is an iterator', async () => {
    const iterator = feeds.generator();
    await iterator.next();
    await iterator.next();
    await takeAway();
    await expect(iterator.next()).rejects.toHaveProperty('code', 'LOCK_LOST');
  });
});

it.each(['promised', 'promisedIterator'] as const)(
  'a lock around a stream that lost its own lock before somebody reads is released when it is refused: %s',
  async (name) => {
    const stream: unknown = await locks.withLock<unknown>('outer', () => feeds[name]());
    await locks.forceUnlock('feed');
    const reading = isObservable(stream) ? lastValueFrom(stream) : (stream as AsyncIterator<number>).next();
    await expect(reading).rejects.toHaveProperty('code', 'LOCK_LOST');
    await until(async () => !(await locks.isLocked('outer')));
  },
);

describe('a lock around a method that returns a locked stream', () => {
  /** Begins to read a stream, and returns what ends it. */
  async function begun(stream: unknown): Promise<() => Promise<unknown>> {
    if (isObservable(stream)) {
      const { ended } = heard(stream);
      await hasReader();
      return () => (source.complete(), ended);
    }
    const iterator = stream as AsyncGenerator<number>;
    await iterator.next();
    return () => iterator.return(undefined);
  }

  it.each([
    { by: 'withLock', name: 'promised', isHeld: true },
    { by: 'withLock', name: 'promisedIterator', isHeld: true },
    { by: 'withLock', name: 'passedOn', isHeld: true },
    { by: 'withLock', name: 'declared', isHeld: false },
    { by: 'withLock', name: 'generator', isHeld: false },
    { by: 'withLock', name: 'passedOnOwn', isHeld: false },
    { by: '@WithLock', name: 'around', isHeld: true },
    { by: '@WithLock', name: 'aroundIterator', isHeld: true },
    { by: '@WithLock', name: 'aroundDeclared', isHeld: true },
    { by: '@WithLock', name: 'aroundGenerator', isHeld: true },
  ] as const)('by $by: it is held until the stream has ended, around $name: $isHeld', async ({ by, name, isHeld }) => {
    const isOuterHeld = () => locks.isLocked('outer');
    const stream = await (by === 'withLock' ? locks.withLock<unknown>('outer', () => feeds[name]()) : feeds[name]());
    const before = await isOuterHeld();
    const end = await begun(stream);
    expect([before, await isOuterHeld(), await isFree()]).toEqual([isHeld, isHeld, false]);
    await end();
    await until(async () => !(await isOuterHeld()) && (await isFree()));
  });
});

it('an iterator that yields when it is left does not keep its lock', async () => {
  const iterator = feeds.yieldingAtItsEnd();
  await iterator.next();
  expect(await iterator.return(undefined)).toEqual({ done: false, value: 'end' });
  expect(await isFree()).toBe(true);
  expect(await iterator.next()).toEqual({ done: true, value: undefined });
});

describe('an iterator that is no generator', () => {
  /** Settle what each call of `next()` returns. */
  let calls: Deferred<IteratorResult<number>>[];
  let isClosed: boolean;

  /** Its calls do not wait for each other. */
  const source: AsyncIterableIterator<number> = {
    next: () => {
      const call = deferred<IteratorResult<number>>();
      calls.push(call);
      return call.promise;
    },
    return: async () => {
      isClosed = true;
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };

  beforeEach(() => {
    isClosed = false;
    calls = [];
  });

  it('an iterator keeps its lock while a value is on its way to a reader that has left', async () => {
    const iterator = await feeds.given(source);
    const value = iterator.next();
    const end = iterator.return!();
    await turn();
    expect(await isFree()).toBe(false);
    calls[0]!.resolve({ done: false, value: 1 });
    expect(await Promise.all([value, end])).toEqual([
      { done: false, value: 1 },
      { done: true, value: undefined },
    ]);
    expect(await isFree()).toBe(true);
  });

  it.each(['done', 'failed'])(
    'an iterator keeps its lock until all its calls have settled, if one is %s',
    async (how) => {
      const iterator = await feeds.given(source);
      const values = Promise.allSettled([iterator.next(), iterator.next(), iterator.next()]);
      if (how === 'done') calls[2]!.resolve({ done: true, value: undefined });
      else calls[2]!.reject(new Error('no more'));
      await turn();
      calls[0]!.resolve({ done: false, value: 1 });
      await turn();
      expect(await isFree()).toBe(false);
      calls[1]!.resolve({ done: false, value: 2 });
      expect((await values).map(({ status }) => status)).toEqual([
        'fulfilled',
        'fulfilled',
        how === 'done' ? 'fulfilled' : 'rejected',
      ]);
      expect([await isFree(), await iterator.next()]).toEqual([true, { done: true, value: undefined }]);
      expect(calls).toHaveLength(3);
    },
  );

  describe.each([
    ['promised', async () => feeds.givenForShort(source)],
    ['read as it is returned', async () => feeds.passedOnForShort(source)[Symbol.asyncIterator]()],
  ] as const)('%s, whose value never comes,', (_how, call) => {
    it('keeps its lock for one lease after its reader has left', async () => {
      const iterator = await call();
      void iterator.next();
      await until(() => calls.length === 1);
      const end = iterator.return!();
      await turn();
      expect(await isFree()).toBe(false);
      expect(await end).toEqual({ done: true, value: undefined });
      expect([await isFree(), isClosed]).toEqual([true, true]);
    });

    it('keeps its lock for one lease after its reader has failed, as Readable.destroy(error) does', async () => {
      const iterator = await call();
      void iterator.next();
      await until(() => calls.length === 1);
      const end = iterator.throw!(new Error('of the reader'));
      await turn();
      expect(await isFree()).toBe(false);
      await expect(end).rejects.toThrow('of the reader');
      expect([await isFree(), isClosed]).toEqual([true, true]);
    });
  });

  it('a reader that waits for two values hears at once that the lock is lost', async () => {
    const iterator = await feeds.given(source);
    void iterator.next().catch(() => undefined);
    await locks.forceUnlock('feed');
    await expect(iterator.next()).rejects.toBeInstanceOf(LockLostError);
    calls[0]!.resolve({ done: false, value: 1 });
  });
});

describe('a stream whose method gives the lock back itself', () => {
  it('a stream is read to its end although the method released the lock before it returned the stream', async () => {
    const stream = await feeds.givenBack();
    const { said, ended } = heard(stream);
    await hasReader();
    source.next(1);
    source.complete();
    await ended;
    expect(said).toEqual([1, 'complete']);
  });

  it('a stream is read to its end although the method released the lock between two of its values', async () => {
    const values: unknown[] = [];
    for await (const value of feeds.givingBack()) values.push([value, await isFree()]);
    expect(values).toEqual([
      [1, false],
      [2, true],
      [3, true],
    ]);
  });
});

it('"for await" reads what a method with a lock has answered, or says that it can not', async () => {
  const read: unknown[] = [];
  for await (const value of feeds.answering(['a', 'b'])) read.push(value);
  expect(read).toEqual(['a', 'b']);
  const page = async () => {
    for await (const value of feeds.answering({ data: ['a', 'b'] })) read.push(value);
  };
  await expect(page()).rejects.toThrow(/can't be read by "for await"\. Await the call/);
  expect(await isFree()).toBe(true);
});

it.each<[string, <T>(result: Promise<T>) => Promise<T>]>([
  ['then', (result) => result.then((value) => value)],
  ['catch', (result) => result.catch((error: unknown) => Promise.reject(error as Error))],
  ['finally', (result) => result.finally(() => undefined)],
])('"for await" reads what a tracer around the method makes of its promise by %s()', async (_how, traced) => {
  const reading = async () => {
    const read: unknown[] = [];
    const result = traced(feeds.answering(['a', 'b']) as Promise<string[]>);
    for await (const value of result as unknown as AsyncIterable<string>) read.push(value);
    return read;
  };
  expect(await reading()).toEqual(['a', 'b']);
  const held = await locks.lock('feed');
  await expect(reading()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  await held.unlock();
});

it('the promise of a locked method can be chained where the global Promise is another one, as with zone.js', async () => {
  const result = feeds.answering(['a', 'b']) as Promise<string[]>;
  const { Promise: native } = globalThis;
  globalThis.Promise = class {
    then(): never {
      throw new Error('This is no such promise.');
    }
  } as never;
  let length: Promise<number>;
  try {
    length = result.then((values) => values.length);
  } finally {
    globalThis.Promise = native;
  }
  expect(await length).toBe(2);
});

it('a method that declares the class of an iterator returns an iterator, which takes its lock when it is read', async () => {
  const pages = feeds.pages();
  await turn();
  expect(await isFree()).toBe(true);
  expect(await pages.next()).toEqual({ done: false, value: 1 });
  expect(await isFree()).toBe(false);
  await pages.return();
  await until(isFree);
});

it('an async generator that nobody asks for a value takes no lock', async () => {
  const iterator = feeds.generator();
  await turn();
  expect([await isFree(), await iterator.return(undefined)]).toEqual([true, { done: true, value: undefined }]);
  expect(ran).toEqual([]);
});

it.each(['return', 'throw'] as const)(
  'an async generator that is left by %s() while it waits leaves the queue, and its body does not run',
  async (way) => {
    const held = await locks.lock('feed');
    const iterator = feeds.generator();
    const first = iterator.next();
    await turn();
    const end = way === 'return' ? iterator.return(undefined) : iterator.throw(new Error('no more'));
    expect(await first).toEqual({ done: true, value: undefined });
    if (way === 'return') expect(await end).toEqual({ done: true, value: undefined });
    else await expect(end).rejects.toThrow('no more');
    held.assertHeld();
    await held.unlock();
    await turn();
    expect([await isFree(), ran]).toEqual([true, []]);
  },
);

it.each(['passedOnOwn', 'passedOnCounted'] as const)(
  'a method that returns an async generator of its own class takes no lock before somebody reads it: %s',
  async (name) => {
    const held = await locks.lock('feed');
    const stream = feeds[name]();
    await turn();
    await expect(stream.next()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await held.unlock();
    expect(ran).toEqual([]);
    const read = [];
    for await (const number of feeds[name]()) read.push([number, await isFree()]);
    expect([read, await isFree()]).toEqual([[[1, false], [2, false]], true]); // prettier-ignore
  },
);

it('a reader that asks late for its first value gets the time-out, which is no unhandled rejection', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  try {
    await using held = await locks.lock('feed');
    const iterator = feeds.passedOnAtOnce()[Symbol.asyncIterator]();
    for (let turns = 0; turns < 5; turns++) await turn();
    await expect(iterator.next()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    held.assertHeld();
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});
