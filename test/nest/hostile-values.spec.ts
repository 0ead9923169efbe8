import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { CurrentLock, type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { lastValueFrom, Observable, type Observer, Subject, Subscription, toArray } from 'rxjs';
import { turn, until } from '../support/deferred.js';
import { HOSTILE } from '../support/hostile-values.js';
import { PLATFORMS, startApp } from './http-app.js';

const KEY = 'account:42';
/** What the bodies return. */
let value: unknown;

@Injectable()
class Accounts {
  @WithLock(KEY)
  async declared(): Promise<unknown> {
    return value;
  }

  @WithLock(KEY)
  undeclared() {
    return value as Promise<unknown>;
  }

  @WithLock(KEY)
  observable(): Observable<unknown> {
    return value as Observable<unknown>;
  }

  @WithLock(KEY)
  async *iterator(): AsyncGenerator<unknown, void> {
    yield value;
  }

  @WithLock(KEY)
  throwing(): Promise<never> {
    return Promise.reject(value);
  }

  @WithLock(KEY)
  async argument(given: unknown, @CurrentLock() lock?: Lock) {
    return given === value && lock?.isHeld;
  }

  @WithLock(KEY, { onTimeout: () => value, wait: 0 })
  async skipped(): Promise<unknown> {
    return 'not skipped';
  }

  @WithLock(KEY, { onTimeout: () => value, wait: 0 })
  skippedObservable(): Observable<unknown> {
    return new Observable();
  }
}

@Controller()
class Handlers {
  @Get('call')
  @WithLock(KEY)
  call(): Promise<unknown> {
    return value as Promise<unknown>;
  }

  @Get('declared')
  @WithLock(KEY, { scope: 'request' })
  async declared(): Promise<unknown> {
    return value;
  }

  @Get('undeclared')
  @WithLock(KEY, { scope: 'request' })
  undeclared() {
    return value;
  }
}

describe.each(HOSTILE)('a value %s', (_name, make) => {
  let module: TestingModule;
  let accounts: Accounts;
  let locks: LockService;

  beforeEach(async () => {
    value = make();
    module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      providers: [Accounts],
    }).compile();
    accounts = module.get(Accounts);
    locks = module.get(LockService);
  });

  afterEach(async () => {
    expect(await locks.isLocked(KEY)).toBe(false);
    await module.close();
  });

  /** `toBe` prints what is not the same, and looks at it for that. */
  const isIt = (got: unknown) => expect(got === value).toBe(true);

  it.each<[string, () => unknown]>([
    ['work', () => value],
    ['asynchronous work', async () => value],
  ])('a hostile value of %s comes out of withLock, and the key is free', async (_kind, work) => {
    isIt(await locks.withLock(KEY, work));
  });

  it.each(['declared', 'undeclared'] as const)(
    'a hostile value of a method that is %s comes out as it is, and the key is free',
    async (method) => {
      isIt(await accounts[method]());
    },
  );

  it('a hostile value of a method that is declared as an Observable is its one value', async () => {
    const [got] = await lastValueFrom(accounts.observable().pipe(toArray()));
    isIt(got);
  });

  it('a hostile value of an iterator comes out as it is, and the key is free', async () => {
    for await (const got of accounts.iterator()) isIt(got);
  });

  it('a hostile value that is thrown comes out as it is, and the key is free', async () => {
    isIt(await accounts.throwing().catch((error: unknown) => error));
    isIt(await locks.withLock(KEY, () => accounts.throwing()).catch((error: unknown) => error));
  });

  it('a hostile value that aborts a wait comes out as it is', async () => {
    await using held = await locks.lock(KEY);
    const aborts = new AbortController();
    const waiting = locks.withLock(KEY, () => undefined, { signal: aborts.signal }).catch((error: unknown) => error);
    aborts.abort(value);
    // In another context the call would be nested.
    isIt(await waiting);
    held.assertHeld();
  });

  it('a hostile value can be an argument', async () => {
    expect(await accounts.argument(value)).toBe(true);
  });

  it('a hostile value can be the result of a call that is skipped', async () => {
    await using held = await locks.lock(KEY);
    isIt(await accounts.skipped());
    isIt((await lastValueFrom(accounts.skippedObservable().pipe(toArray())))[0]);
    held.assertHeld();
  });

  it('a hostile value can be the object that a method is called on, which does not run then', async () => {
    const ran = await Promise.resolve(accounts.argument.call(value as Accounts, value)).catch(() => undefined);
    expect(ran).toBe(undefined);
  });
});

describe.each(PLATFORMS)('on %s', (_platform, adapter) => {
  let app: INestApplication;

  beforeEach(async () => {
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Handlers] });
  });

  afterEach(() => app.close());

  it.each(HOSTILE.flatMap(([name, make]) => ['declared', 'undeclared'].map((path) => [name, path, make] as const)))(
    "a value %s leaves its key free, whatever Nest makes of it (%s, with scope: 'request')",
    async (_name, path, make) => {
      value = make();
      const answer = await fetch(`${await app.getUrl()}/${path}`);
      await answer.text();
      await until(async () => !(await app.get(LockService).isLocked(KEY)));
    },
  );
});

/** As a query builder: it runs when somebody asks for its result, each time. */
class Query implements PromiseLike<unknown> {
  runs = 0;
  readonly #run: () => unknown;

  constructor(run: () => unknown) {
    this.#run = run;
  }

  then<A, B>(
    resolved?: ((value: unknown) => A | PromiseLike<A>) | null,
    rejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.runs++;
    return Promise.resolve(this.#run()).then(resolved, rejected);
  }
}

describe('a query that runs when it is awaited', () => {
  let app: INestApplication;
  let locks: LockService;
  let query: Query;

  beforeEach(async () => {
    app = await startApp(PLATFORMS[0]![1], {
      imports: [LockTestingModule.forRoot()],
      providers: [Accounts],
      controllers: [Handlers],
    });
    locks = app.get(LockService);
    // It waits for the lock of its own key, if it does not run inside of that.
    value = query = new Query(async () => {
      const isCurrent = locks.current(KEY)?.isHeld ?? false;
      await turn();
      return locks.withLock(KEY, () => ({ isCurrent }), { wait: 0 });
    });
  });

  afterEach(async () => {
    await until(async () => !(await locks.isLocked(KEY)));
    await app.close();
  });

  it.each<[string, () => unknown]>([
    ['the work of withLock', () => locks.withLock(KEY, () => query)],
    ['asynchronous work of withLock', () => locks.withLock(KEY, async () => query)],
    ['a method', () => app.get(Accounts).undeclared()],
    ['an asynchronous method', () => app.get(Accounts).declared()],
    ['a method that is declared as an Observable', () => lastValueFrom(app.get(Accounts).observable())],
    ["a handler with scope: 'call'", async () => (await fetch(`${await app.getUrl()}/call`)).json()],
    ["a handler with scope: 'request'", async () => (await fetch(`${await app.getUrl()}/undeclared`)).json()],
    [
      "an asynchronous handler with scope: 'request'",
      async () => (await fetch(`${await app.getUrl()}/declared`)).json(),
    ],
  ])('a lazy query of %s runs inside its lock, once', async (_kind, call) => {
    expect([await call(), query.runs]).toEqual([{ isCurrent: true }, 1]);
  });
});

/** As an Observable of another copy of rxjs: no instance of ours. */
class OtherObservable {
  readonly #source: Observable<unknown>;

  constructor(source: Observable<unknown>) {
    this.#source = source;
  }

  lift(): this {
    return this;
  }

  subscribe(observer: Observer<unknown>): Subscription {
    return this.#source.subscribe(observer);
  }
}

describe('a stream', () => {
  let module: TestingModule;
  let source: Subject<unknown>;

  beforeEach(async () => {
    source = new Subject();
    module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      providers: [Accounts],
    }).compile();
  });

  afterEach(() => module.close());

  const isLocked = () => module.get(LockService).isLocked(KEY);

  it.each<[string, () => unknown]>([
    ['of another copy of rxjs', () => new OtherObservable(source)],
    ['inside a Proxy', () => new Proxy(source.asObservable(), {})],
  ])('a stream %s keeps the lock to its end, and until its reader leaves', async (_kind, make) => {
    for (const end of ['complete', 'error', 'leave'] as const) {
      source = new Subject();
      value = make();
      const heard = (await module.get(Accounts).undeclared()) as Observable<unknown>;
      const got: unknown[] = [];
      const reader = heard.subscribe({ next: (one) => got.push(one), error: (error) => got.push(error) });
      source.next('one');
      expect([got, await isLocked()]).toEqual([['one'], true]);
      if (end === 'leave') reader.unsubscribe();
      else source[end]('no');
      await until(async () => !(await isLocked()));
      expect(got).toEqual(end === 'error' ? ['one', 'no'] : ['one']);
    }
  });

  it('a stream of another copy of rxjs that throws on subscribe releases its lock, and fails', async () => {
    value = Object.assign(new OtherObservable(source), {
      subscribe: () => {
        throw new Error('no');
      },
    });
    const heard = (await module.get(Accounts).undeclared()) as Observable<unknown>;
    await expect(lastValueFrom(heard)).rejects.toThrow('no');
    expect(await isLocked()).toBe(false);
  });

  it('a stream of an old copy of rxjs that gives all at once releases its lock, and ends', async () => {
    value = Object.assign(new OtherObservable(source), {
      subscribe: (observer: Observer<unknown>) => {
        // It ends what it makes of the observer, which does not know of that.
        const own = Object.create(observer) as Observer<unknown>;
        own.next('one');
        own.complete();
        return new Subscription();
      },
    });
    const heard = (await module.get(Accounts).undeclared()) as Observable<unknown>;
    expect(await lastValueFrom(heard)).toBe('one');
    expect(await isLocked()).toBe(false);
  });

  it('a stream of ours that can not be read releases its lock, and fails', async () => {
    value = Object.assign(new Observable(), {
      pipe: () => {
        throw new Error('no');
      },
    });
    const heard = (await module.get(Accounts).undeclared()) as Observable<unknown>;
    await expect(lastValueFrom(heard)).rejects.toThrow('no');
    expect(await isLocked()).toBe(false);
  });
});
