import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  type NestInterceptor,
  RequestTimeoutException,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { EventEmitter, once } from 'node:events';
import http, { type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  firstValueFrom,
  from,
  lastValueFrom,
  map,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  of,
  retry,
  skip,
  throwError,
} from 'rxjs';
import request from 'supertest';
import { nextTurn } from '../../lib/clock/next-turn.js';
import { rawResponse } from '../../lib/http/http-request.js';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';
import { Audit, KEY } from './audit.js';
import { PLATFORMS, startApp } from './http-app.js';

jest.setTimeout(30_000);

/** What interceptors say: `works` and, from the one that answers too early, `gives up`. */
const events = new EventEmitter();
const ran: string[] = [];
let locks: LockService;
let goOn: Deferred;
let compensated: Deferred;
/** What a handler returns. */
let file: Readable;

/** Answers as soon as an interceptor inside the lock works. It stands below the lock, so it runs outside. */
class Hasty implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    const early = from(once(events, 'works')).pipe(mergeMap(() => throwError(() => new RequestTimeoutException())));
    return merge(next.handle(), early);
  }
}

/** Gives up two tries, each as soon as its handler works. */
class HastyTwice implements NestInterceptor {
  intercept(context: unknown, next: CallHandler): Observable<unknown> {
    return defer(() => new Hasty().intercept(context, next)).pipe(retry(1));
  }
}

async function work(): Promise<void> {
  events.emit('works');
  await goOn.promise;
  ran.push('work');
}

/** Works when the handler has ended, as a commit does. */
class Commits implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(concatMap(work));
  }
}

class Begins implements NestInterceptor {
  async intercept(_context: unknown, next: CallHandler): Promise<Observable<unknown>> {
    await work();
    return next.handle();
  }
}

const heldByMe = () => (locks.current(KEY)?.isHeld ? 'held' : 'not held');

/** Reads the handler by a promise, which nobody can unsubscribe, and works after it. */
class AwaitsAndCommits implements NestInterceptor {
  async intercept(_context: unknown, next: CallHandler): Promise<Observable<unknown>> {
    const value: unknown = await lastValueFrom(next.handle());
    ran.push(`commit, ${heldByMe()}`);
    return of(value);
  }
}

/** Begins a transaction, and reads the handler in it by a promise. */
class InTransaction implements NestInterceptor {
  async intercept(_context: unknown, next: CallHandler): Promise<Observable<unknown>> {
    await work();
    const committed = lastValueFrom(next.handle()).catch((error: unknown) => {
      ran.push('rolled back');
      throw error;
    });
    return from(committed);
  }
}

/** Tries the handler again once, and makes up for what it has done. */
class Compensates implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    const compensate = async (): Promise<void> => {
      events.emit('compensates');
      await compensated.promise;
    };
    return next.handle().pipe(
      retry(1),
      catchError(() => from(compensate())),
    );
  }
}

/** Tries the handler again and again. */
class Insists implements NestInterceptor {
  async intercept(_context: unknown, next: CallHandler): Promise<Observable<unknown>> {
    await work();
    return next.handle().pipe(retry());
  }
}

class WaitsForEver implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(concatMap(() => (events.emit('works'), NEVER)));
  }
}

/** Waits for what only its client can send, as for the rest of an upload, before it calls the handler. */
class ReadsUpload implements NestInterceptor {
  async intercept(_context: unknown, next: CallHandler): Promise<Observable<unknown>> {
    events.emit('works');
    await once(events, 'uploaded');
    return next.handle();
  }
}

/** Calls the handler again when it has failed. It stands below the lock, so it runs outside. */
class Retries implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(retry(1));
  }
}

class CallsAgain implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(catchError(() => next.handle()));
  }
}

class Repeats implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return concat(next.handle(), next.handle());
  }
}

/** Calls a method that locks the same key when the handler has ended or failed. */
@Injectable()
class Notes implements NestInterceptor {
  constructor(private readonly audit: Audit) {}

  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      catchError(() => of('failed')),
      concatMap((value: string) => this.audit.note(value)),
    );
  }
}

class SeesNoLock implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((value: string) => `${value}, ${locks.current(KEY) ? 'inside' : 'outside'}`));
  }
}

/** Sends an answer of its own before the handler runs. It stands below the lock, so it runs outside. */
class AnswersFirst implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    rawResponse(context)!.end('early');
    return next.handle();
  }
}

// An interceptor above the lock runs inside it, one below it outside.
@Controller()
class Orders {
  @Get('commit')
  @UseInterceptors(Commits)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  commit() {
    return this.#handle();
  }

  @Get('commit-of-observable')
  @UseInterceptors(Commits)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  commitOfObservable() {
    return from(this.#handle());
  }

  @Get('begin')
  @UseInterceptors(Begins)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  begin() {
    return this.#handle();
  }

  @Get('for-ever')
  @UseInterceptors(WaitsForEver)
  @WithLock(KEY, { scope: 'request', lease: '2s' })
  @UseInterceptors(Hasty)
  forEver() {
    return this.#handle();
  }

  @Get('upload')
  @UseInterceptors(ReadsUpload)
  @WithLock(KEY, { scope: 'request', lease: '2s' })
  upload() {
    return this.#handle();
  }

  @Get('upload/retried')
  @UseInterceptors(ReadsUpload)
  @WithLock(KEY, { scope: 'request', lease: '1s' })
  @UseInterceptors(Retries)
  uploadRetried() {
    return this.#fail();
  }

  @Get('upload/called-again')
  @UseInterceptors(ReadsUpload)
  @WithLock(KEY, { scope: 'request', lease: '1s' })
  @UseInterceptors(CallsAgain)
  uploadCalledAgain() {
    return from(this.#fail());
  }

  @Get('upload/repeated')
  @UseInterceptors(ReadsUpload)
  @WithLock(KEY, { scope: 'request', lease: '1s' })
  @UseInterceptors(Repeats)
  uploadRepeated() {
    return this.#handle();
  }

  @Get('commit-for-nobody')
  @UseInterceptors(Commits)
  @WithLock(KEY, { scope: 'request', lease: '1s' })
  commitForNobody() {
    return this.#handle();
  }

  @Get('silent')
  @UseInterceptors(Commits)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  silent() {
    events.emit('works');
    return merge(EMPTY, NEVER);
  }

  @Get('awaited')
  @UseInterceptors(AwaitsAndCommits)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  async awaited() {
    await work();
    return 'done';
  }

  @Get('awaited-observable')
  @UseInterceptors(AwaitsAndCommits)
  @WithLock(KEY, { scope: 'request', lease: '1s' })
  @UseInterceptors(Hasty)
  awaitedObservable() {
    return defer(work);
  }

  @Get('awaited-observable/twice')
  @UseInterceptors(AwaitsAndCommits)
  @WithLock(KEY, { scope: 'request', lease: '1s' })
  @UseInterceptors(HastyTwice)
  awaitedObservableTwice() {
    return defer(() => work().then(turn));
  }

  @Get('promised-observable')
  @UseInterceptors(AwaitsAndCommits)
  @WithLock(KEY, { scope: 'request', onLost: 'ignore' })
  @UseInterceptors(Hasty)
  async promisedObservable() {
    await work();
    return defer(async () => ran.push('observable'));
  }

  @Get('file')
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  async file() {
    await work();
    return new StreamableFile(file);
  }

  @Get('stream')
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  async stream() {
    await work();
    return file;
  }

  @Get('entity')
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  async entity() {
    await work();
    const noted = (what: string) => () => void ran.push(what);
    return { on: noted('on'), read: noted('read'), destroy: noted('destroy'), cancel: noted('cancel') };
  }

  @Get('compensated')
  @UseInterceptors(Compensates)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  async compensated() {
    await work();
    throw new Error('failed');
  }

  @Get('insisting')
  @UseInterceptors(Insists)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  async insisting() {
    ran.push('handler');
  }

  @Get('iterable')
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  async iterable() {
    await work();
    const left = async () => ({ done: true as const, value: file.destroy() });
    return { [Symbol.asyncIterator]: () => ({ next: left, return: left }) };
  }

  @Get('in-transaction')
  @UseInterceptors(InTransaction)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(Hasty)
  async inTransaction() {
    ran.push('handler');
  }

  @Get('answered-first')
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(AnswersFirst)
  answeredFirst() {
    return this.#handle();
  }

  @Get('noted')
  @UseInterceptors(Notes)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(SeesNoLock)
  async noted() {
    return 'done';
  }

  @Get('failing')
  @UseInterceptors(Notes)
  @WithLock(KEY, { scope: 'request' })
  @UseInterceptors(SeesNoLock)
  async failing() {
    throw new Error('of the handler');
  }

  async #fail(): Promise<never> {
    ran.push('handler');
    throw new Error('of the handler');
  }

  async #handle() {
    ran.push('handler');
    return 'done';
  }
}

describe.each(PLATFORMS)("on %s, with scope: 'request'", (_platform, adapter) => {
  let app: INestApplication;

  beforeEach(async () => {
    ran.length = 0;
    goOn = deferred();
    compensated = deferred();
    app = await startApp(adapter, {
      imports: [LockTestingModule.forRoot()],
      controllers: [Orders],
      providers: [Audit],
    });
    locks = app.get(LockService);
  });

  afterEach(async () => {
    goOn.resolve();
    await until(isFree);
    await app.close();
  });

  const isFree = async () => !(await locks.isLocked(KEY));
  const get = (path: string) => request(app.getHttpServer()).get(`/${path}`);

  /** Sends a request whose client goes as soon as an interceptor works for it. */
  async function leaveWhenItWorks(path: string, before?: () => Promise<void>): Promise<void> {
    const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
    const works = once(events, 'works');
    const sent = http.get({ port, host: '127.0.0.1', path: `/${path}`, agent: false }).on('error', () => undefined);
    await works;
    await before?.();
    sent.destroy();
  }

  it.each([
    ['commit', ['handler', 'work']],
    ['commit-of-observable', ['handler', 'work']],
    ['begin', ['work']],
  ])(
    'an interceptor inside the lock keeps it to the end of its work when another has answered (%s)',
    async (path, all) => {
      await get(path).expect(408);
      expect(await isFree()).toBe(false);
      goOn.resolve();
      await until(isFree);
      expect(ran).toEqual(all);
    },
  );

  it.each(['awaited', 'awaited-observable'])(
    'an interceptor that awaits the handler commits inside the lock when another has answered meanwhile (%s)',
    async (path) => {
      await get(path).expect(408);
      expect(await isFree()).toBe(false);
      goOn.resolve();
      await until(isFree);
      expect(ran).toEqual(['work', 'commit, held']);
    },
  );

  it('an interceptor that awaits the handler commits inside the lock, each time when two tries were given up', async () => {
    const works = once(events, 'works');
    const response = get('awaited-observable/twice').then(({ status }) => status);
    await works;
    await turn();
    goOn.resolve();
    expect(await response).toBe(408);
    await until(() => ran.length === 4);
    expect(ran).toEqual(['work', 'commit, held', 'work', 'commit, held']);
    await until(isFree);
  });

  it('an Observable that the handler promises does not begin when another has answered meanwhile', async () => {
    await get('promised-observable').expect(408);
    goOn.resolve();
    await until(isFree);
    expect(ran).toEqual(['work']);
  });

  it.each(['file', 'stream', 'iterable'])(
    'a %s of the handler is closed when another has answered meanwhile',
    async (path) => {
      file = Readable.from(['row']);
      await get(path).expect(408);
      goOn.resolve();
      await until(() => file.destroyed);
      await until(isFree);
    },
  );

  it('an entity of the handler is left alone when another has answered meanwhile', async () => {
    await get('entity').expect(408);
    goOn.resolve();
    await until(isFree);
    await turn();
    expect(ran).toEqual(['work']);
  });

  it('an interceptor that tries a refused handler again and again is ended', async () => {
    await get('insisting').expect(408);
    goOn.resolve();
    await until(isFree);
    expect(ran).toEqual(['work']);
  });

  it('an interceptor makes up inside the lock for a handler that was refused', async () => {
    await get('compensated').expect(408);
    const compensating = once(events, 'compensates');
    goOn.resolve();
    await compensating;
    await turn();
    expect(await isFree()).toBe(false);
    compensated.resolve();
    await until(isFree);
    expect(ran).toEqual(['work']);
  });

  it('a handler that is refused, because another has answered, rejects to somebody who listens', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    await get('in-transaction').expect(408);
    goOn.resolve();
    await until(isFree);
    await until(() => ran.includes('rolled back'));
    await turn();
    process.off('unhandledRejection', note);
    expect([unhandled, ran]).toEqual([[], ['work', 'rolled back']]);
  });

  it('an interceptor inside the lock keeps it for a lease at most when another has answered', async () => {
    await get('for-ever').expect(408);
    await until(isFree);
  });

  it('an interceptor that waits for its client keeps the lock for a lease at most when that has gone', async () => {
    await leaveWhenItWorks('upload');
    await until(isFree);
    expect(ran).toEqual([]);
  });

  it.each(['retried', 'called-again', 'repeated'])(
    'an interceptor that waits for its client again keeps the lock for a lease at most when that has gone (%s)',
    async (path) => {
      await leaveWhenItWorks(`upload/${path}`, async () => {
        const worksAgain = once(events, 'works');
        events.emit('uploaded');
        await worksAgain;
      });
      await until(isFree, 6_000);
      expect(ran).toEqual(['handler']);
    },
  );

  it('an interceptor that works after the handler keeps the lock to its end when the client has gone', async () => {
    const renewals = locks.events.pipe(filter(({ type }) => type === 'renewed'));
    const renewedForMoreThanALease = firstValueFrom(renewals.pipe(skip(4)));
    await leaveWhenItWorks('commit-for-nobody');
    await renewedForMoreThanALease;
    expect(await isFree()).toBe(false);
    goOn.resolve();
    await until(isFree);
    expect(ran).toEqual(['handler', 'work']);
  });

  it('an Observable of the handler does not keep the lock when nobody reads it any more', async () => {
    await get('silent').expect(408);
    await until(isFree);
  });

  it('a request that was answered before its handler ran frees its key, though the clock of a test stands still', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
    const { text } = await get('answered-first');
    for (let turns = 0; turns < 1000 && !(await isFree()); turns++) await nextTurn();
    const isFreed = await isFree();
    jest.useRealTimers();
    expect([text, isFreed]).toEqual(['early', true]);
  });

  it.each([
    ['noted', 'done'],
    ['failing', 'failed'],
  ])(
    'an interceptor inside the lock is in its async context after the handler, and one outside is not (%s)',
    async (path, what) => {
      const { status, text } = await get(path);
      expect([status, text]).toEqual([200, `${what}, noted, outside`]);
    },
  );
});
