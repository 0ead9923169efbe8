import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  type NestInterceptor,
  Param,
  UseInterceptors,
} from '@nestjs/common';
import { CurrentLock, type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { Readable } from 'node:stream';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  first,
  firstValueFrom,
  from,
  merge,
  mergeMap,
  type Observable,
  of,
  retry,
  throwError,
  toArray,
} from 'rxjs';
import request from 'supertest';
import { rawResponse } from '../../lib/http/http-request.js';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

jest.setTimeout(30_000);

const KEY = 'order:7';

let locks: LockService;
let inside = 0;
let most = 0;
let runs = 0;
/** A handler goes on when the test says so. */
let goOn: Deferred;
let giveUp: Deferred<string>;
/** How the lock was held when the handlers began. */
let modes: string[] = [];

async function downgradeOnce(lock: Lock): Promise<string> {
  modes.push(lock.mode);
  if (modes.length > 1) return 'again';
  await lock.downgrade();
  throw new Error('of the handler');
}

async function work(): Promise<string> {
  runs++;
  most = Math.max(most, ++inside);
  for (let turns = 0; turns < 20; turns++) await turn();
  inside--;
  return locks.current(KEY) ? 'locked' : 'not locked';
}

/** Calls the handler twice at once. */
class Twice implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return merge(next.handle(), next.handle()).pipe(mergeMap(read), toArray());
  }
}

/** Reads what the handler yields. */
async function read(value: unknown): Promise<unknown> {
  if (typeof value === 'string') return value;
  const values: unknown[] = [];
  for await (const each of value as AsyncIterable<unknown>) values.push(each);
  return values.join();
}

/** Gives up the first call of the handler when that is inside, and calls it again. */
class Hasty implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    const giveUp = async () => {
      await until(() => runs === 1);
      throw new Error('too slow');
    };
    let tries = 0;
    return merge(
      next.handle(),
      defer(() => (++tries === 1 ? giveUp() : EMPTY)),
    ).pipe(retry(1));
  }
}

/** Calls the handler again when it, or the reading of what it has returned, has failed. */
class TriesAgain implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(mergeMap(read), retry(1));
  }
}

/** Calls the handler twice at once when a first call has ended. */
class OnceThenTwice implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    const twice = merge(next.handle(), next.handle().pipe(catchError(() => of('refused'))));
    return concat(next.handle(), twice).pipe(mergeMap(read), toArray());
  }
}

/** Works before the handler, as one that begins a transaction. */
class Begins implements NestInterceptor {
  async intercept(_context: unknown, next: CallHandler): Promise<Observable<unknown>> {
    await work();
    return next.handle();
  }
}

/** Gives up the handler when the test says so, and answers when the test says so. */
class Impatient implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return merge(from(giveUp.promise), next.handle()).pipe(
      first(),
      concatMap((value) => goOn.promise.then(() => value)),
    );
  }
}

/** Gives up the first call of the handler when that is inside, and calls it again. It stands outside the lock. */
class HastyOutside implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    const tooSlow = from(until(() => runs === 1)).pipe(mergeMap(() => throwError(() => new Error('too slow'))));
    let tries = 0;
    return defer(() => (++tries === 1 ? merge(next.handle(), tooSlow) : next.handle())).pipe(retry(1));
  }
}

/** The functions that the response had as its `writeHead` after each try. */
const heads = new Set<unknown>();

/** Calls the handler again when it has failed. */
class Stubborn implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const response = rawResponse(context)!;
    const delay = () => {
      heads.add(Reflect.get(response, 'writeHead'));
      return of(0);
    };
    return next.handle().pipe(retry({ count: 5, delay }));
  }
}

interface Order {
  readonly params: { id: string };
}

/** Calls the handler for one order after the other. */
class InTurn implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { params } = context.switchToHttp().getRequest<Order>();
    const call = (id: string) => {
      params.id = id;
      return next.handle();
    };
    return from(['7', '8', '7']).pipe(concatMap(call), toArray());
  }
}

const SCOPE = { scope: 'request', wait: '5s' } as const;

/** Resolves when the handler's `onTimeout` is called, which answers when the test says so. */
let timedOut: Deferred;

const instead = async (): Promise<Observable<string>> => {
  timedOut.resolve();
  await goOn.promise;
  return defer(() => {
    runs++;
    return of('instead');
  });
};

/** What a handler sends instead. */
let file: Readable | undefined;

const insteadStream = async (): Promise<Readable> => {
  timedOut.resolve();
  await goOn.promise;
  return (file = Readable.from(['row']));
};

// An interceptor above the lock runs inside it.
@Controller()
class Orders {
  @Get('promise/:id')
  @UseInterceptors(Twice)
  @WithLock('order:<params.id>', SCOPE)
  promise(@Param('id') _id: string) {
    return work();
  }

  @Get('observable/:id')
  @UseInterceptors(Twice)
  @WithLock('order:<params.id>', SCOPE)
  observable() {
    return defer(() => from(work()));
  }

  @Get('ignoring/:id')
  @UseInterceptors(Twice)
  @WithLock('order:<params.id>', { ...SCOPE, onLost: 'ignore' })
  ignoring() {
    return defer(() => from(work()));
  }

  @Get('iterator/:id')
  @UseInterceptors(Twice)
  @WithLock('order:<params.id>', SCOPE)
  async *iterator() {
    yield await work();
  }

  @Get('hasty/:id')
  @UseInterceptors(Hasty)
  @WithLock('order:<params.id>', SCOPE)
  async hasty() {
    const result = await work();
    await goOn.promise;
    return result;
  }

  @Get('busy/:id')
  @UseInterceptors(Twice)
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  async busy() {
    runs++;
    await goOn.promise;
  }

  // Below the lock, so it runs outside.
  @Get('several/:id')
  @WithLock('order:<params.id>', SCOPE)
  @UseInterceptors(InTurn)
  async several(@Param('id') id: string) {
    return `${id} in ${locks.current()!.key}`;
  }

  @Get('at-once-promise/:id')
  @UseInterceptors(Begins)
  @WithLock('order:<params.id>', { scope: 'request', wait: '300ms' })
  @UseInterceptors(OnceThenTwice)
  async atOncePromise() {
    return 'done';
  }

  @Get('at-once-observable/:id')
  @UseInterceptors(Begins)
  @WithLock('order:<params.id>', { scope: 'request', wait: '300ms' })
  @UseInterceptors(OnceThenTwice)
  atOnceObservable() {
    return of('done');
  }

  @Get('hasty-outside/:id')
  @WithLock('order:<params.id>', { scope: 'request', wait: '20s' })
  @UseInterceptors(HastyOutside)
  async hastyOutside() {
    const first = runs === 0;
    const done = await work();
    if (first) await goOn.promise;
    return done;
  }

  @Get('outside-promise/:id')
  @WithLock('order:<params.id>', SCOPE)
  @UseInterceptors(TriesAgain)
  async outsidePromise(@CurrentLock() lock: Lock) {
    return downgradeOnce(lock);
  }

  @Get('outside-observable/:id')
  @WithLock('order:<params.id>', SCOPE)
  @UseInterceptors(TriesAgain)
  outsideObservable(@CurrentLock() lock: Lock) {
    return defer(() => downgradeOnce(lock));
  }

  @Get('outside-iterator/:id')
  @WithLock('order:<params.id>', SCOPE)
  @UseInterceptors(TriesAgain)
  async *outsideIterator(@CurrentLock() lock: Lock) {
    yield await downgradeOnce(lock);
  }

  @Get('inside-promise/:id')
  @UseInterceptors(TriesAgain)
  @WithLock('order:<params.id>', SCOPE)
  async insidePromise(@CurrentLock() lock: Lock) {
    return downgradeOnce(lock);
  }

  @Get('inside-observable/:id')
  @UseInterceptors(TriesAgain)
  @WithLock('order:<params.id>', SCOPE)
  insideObservable(@CurrentLock() lock: Lock) {
    return defer(() => downgradeOnce(lock));
  }

  @Get('inside-iterator/:id')
  @UseInterceptors(TriesAgain)
  @WithLock('order:<params.id>', SCOPE)
  async *insideIterator(@CurrentLock() lock: Lock) {
    yield await downgradeOnce(lock);
  }

  @Get('downgrading/:id')
  @WithLock('order:<params.id>', SCOPE)
  async downgrading(@CurrentLock() lock: Lock) {
    await lock.downgrade();
    return defer(() => of(`as ${lock.mode}`));
  }

  @Get('impatient/:id')
  @WithLock('order:<params.id>', SCOPE)
  @UseInterceptors(Impatient)
  async impatient() {
    runs++;
  }

  @Get('instead/:id')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0, onTimeout: instead })
  @UseInterceptors(Impatient)
  insteadOf() {
    return of('done');
  }

  @Get('instead-stream/:id')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0, onTimeout: insteadStream })
  @UseInterceptors(Impatient)
  async streamInstead() {
    return Promise.resolve('done');
  }

  @Get('stubborn/:id')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  @UseInterceptors(Stubborn)
  async stubborn() {
    runs++;
  }

  @Get('itself/:id')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  async itself(@Param('id') id: string): Promise<string> {
    return id === '' ? work() : this.itself('');
  }
}

describe.each(PLATFORMS)("on %s, tries of a handler inside one lock with scope: 'request'", (_platform, adapter) => {
  let app: INestApplication;

  beforeEach(async () => {
    inside = most = runs = 0;
    heads.clear();
    modes = [];
    goOn = deferred();
    giveUp = deferred();
    timedOut = deferred();
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Orders] });
    locks = app.get(LockService);
  });

  afterEach(async () => {
    goOn.resolve();
    await until(isFree);
    await app.close();
  });

  const isFree = async () => !(await locks.isLocked(KEY));
  const get = (path: string) => request(app.getHttpServer()).get(`/${path}/7`);

  it.each(['promise', 'observable', 'ignoring', 'iterator'])('tries of a handler run in turn (%s)', async (kind) => {
    const { status, body } = await get(kind);
    expect([status, body, most, runs]).toEqual([200, ['locked', 'locked'], 1, 2]);
  });

  it('tries of a handler run in turn when an interceptor has given up the one before', async () => {
    const answer = get('hasty').then(({ text }) => text);
    await until(() => runs === 1 && inside === 0);
    for (let turns = 0; turns < 20; turns++) await turn();
    expect(runs).toBe(1);
    goOn.resolve();
    expect([await answer, runs, most]).toEqual(['locked', 2, 1]);
  });

  it('a try outside the lock waits only for the one before, although the request holds the lock', async () => {
    const waits = firstValueFrom(locks.events.pipe(filter(({ type }) => type === 'queued')));
    const ends = firstValueFrom(locks.events.pipe(filter(({ type }) => type === 'aborted')));
    const answer = get('hasty-outside').then(({ text }) => text);
    await waits;
    expect(runs).toBe(1);
    goOn.resolve();
    expect([await answer, runs, most]).toEqual(['locked', 2, 1]);
    expect(String(((await ends) as { reason: unknown }).reason)).toMatch('Another try of the same request has ended');
  });

  it('a try of a handler is answered with 409 when the one before still works after "wait"', async () => {
    const { status, body } = await get('busy');
    expect([status, (body as { code: string }).code, runs]).toEqual([409, 'LOCK_TIMEOUT', 1]);
    expect(await isFree()).toBe(false);
  });

  it('a try of a handler has the lock of its own key when an interceptor has changed the request', async () => {
    const { body } = await get('several');
    expect(body).toEqual(['7 in order:7', '8 in order:8', '7 in order:7']);
    await until(async () => !(await locks.isLocked('order:8')));
  });

  it.each(['at-once-promise', 'at-once-observable'])(
    'of two tries at once in a lock that is idle, one waits for the other, and interceptors inside the lock run alone (%s)',
    async (path) => {
      const { status, body } = await get(path);
      expect([status, body, most]).toEqual([200, ['done', 'done', 'done'], 1]);
    },
  );

  it.each(['outside', 'inside'].flatMap((place) => ['promise', 'observable', 'iterator'].map((kind) => [place, kind])))(
    'a handler is refused when an interceptor %s the lock calls it again after it has downgraded the lock (%s)',
    async (place, kind) => {
      const { status, body } = await get(`${place}-${kind}`);
      expect([status, (body as { code: string }).code, modes]).toEqual([500, 'LOCK_OPTIONS_INVALID', ['exclusive']]);
    },
  );

  it('a handler that has downgraded its lock returns an Observable that is read', async () => {
    const { status, text } = await get('downgrading');
    expect([status, text]).toEqual([200, 'as read']);
  });

  it.each(['before', 'after'])('a try that is given up %s the lock is free takes no lock', async (moment) => {
    const held = await locks.lock(KEY);
    const queued = firstValueFrom(locks.events.pipe(filter(({ type }) => type === 'queued')));
    const answer = get('impatient').then(({ text }) => text);
    await queued;
    if (moment === 'after') void held.unlock();
    giveUp.resolve('too slow');
    await turn();
    await held.unlock();
    const next = await locks.lock(KEY, { wait: '1s' });
    await next.unlock();
    expect(runs).toBe(0);
    goOn.resolve();
    expect(await answer).toBe('too slow');
  });

  it('what "onTimeout" returns for a try that is given up is not read', async () => {
    const held = await locks.lock(KEY);
    const answer = get('instead').then(({ text }) => text);
    await timedOut.promise;
    giveUp.resolve('too slow');
    await turn();
    goOn.resolve();
    expect([await answer, runs]).toEqual(['too slow', 0]);
    await held.unlock();
  });

  it('a stream that "onTimeout" returns for a try that is given up is closed', async () => {
    const held = await locks.lock(KEY);
    const answer = get('instead-stream').then(({ text }) => text);
    await timedOut.promise;
    giveUp.resolve('too slow');
    await turn();
    goOn.resolve();
    expect(await answer).toBe('too slow');
    await until(() => file?.destroyed ?? false);
    await held.unlock();
  });

  // Each wrapper calls the one before: after thousands of tries the stack overflowed, and nothing was sent.
  it('tries that get no lock wrap the response once', async () => {
    const held = await locks.lock(KEY);
    const { status, headers } = await get('stubborn');
    expect([status, Number(headers['retry-after']) > 0, heads.size, runs]).toEqual([409, true, 1, 0]);
    await held.unlock();
  });

  it('a try of a handler does not wait for itself', async () => {
    const { text } = await get('itself');
    expect([text, runs]).toEqual(['locked', 1]);
  });
});
