import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  type NestInterceptor,
  Sse,
  UseInterceptors,
} from '@nestjs/common';
import { type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { merge, type Observable, of, retry, take, toArray } from 'rxjs';
import request from 'supertest';
import { clientGoneSignal, rawResponse } from '../../lib/http/http-request.js';
import { type Deferred, deferred, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';
import { collectGarbage } from '../support/collect-garbage.js';

const KEY = 'feed:7';
const TRIES = 200;
/** How many tries may be kept until the response is over. */
const FEW = 20;

let tries = 0;
/** The try after the last one begins when the test says so. */
let goOn: Deferred;
/** The functions that the response had as its `write` and `writeHead` after each try. */
const wrappers = { write: new Set<unknown>(), writeHead: new Set<unknown>() };
/** What each try had: its error, and the signal that would have ended its wait. */
const errors: WeakRef<object>[] = [];
const signals: WeakRef<object>[] = [];
/** The signals that tell the tries that the client has gone. */
const clientsGone = new Set<unknown>();

/** Calls the handler again when it has failed. */
class Stubborn implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const response = rawResponse(context)!;
    const delay = async (error: object): Promise<void> => {
      tries++;
      for (const [name, seen] of Object.entries(wrappers)) seen.add(Reflect.get(response, name));
      errors.push(new WeakRef(error));
      if (tries === TRIES) await goOn.promise;
    };
    return next.handle().pipe(retry({ delay }));
  }
}

/** Calls the handler several times at once. The first failure becomes the response. */
class AtOnce implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return merge(next.handle(), next.handle(), next.handle()).pipe(toArray());
  }
}

function key(): string {
  clientsGone.add(clientGoneSignal());
  return KEY;
}

const OPTIONS = { scope: 'request', wait: 0 } as const;

@Controller()
class Feeds {
  @Sse('events')
  @WithLock(key, OPTIONS)
  @UseInterceptors(Stubborn)
  events() {
    return of({ data: 'done' }).pipe(take(1));
  }

  @Get('plain')
  @WithLock(key, OPTIONS)
  @UseInterceptors(Stubborn)
  async plain() {
    return 'done';
  }

  @Get('at-once')
  @WithLock(key, OPTIONS)
  @UseInterceptors(AtOnce)
  async atOnce() {
    return 'done';
  }
}

describe.each(PLATFORMS)('on %s, many tries of a handler that get no lock', (_platform, adapter) => {
  let app: INestApplication;
  let locks: LockService;
  let held: Lock;

  beforeEach(async () => {
    tries = 0;
    goOn = deferred();
    for (const each of [...Object.values(wrappers), clientsGone]) each.clear();
    for (const each of [errors, signals]) each.length = 0;
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Feeds] });
    locks = app.get(LockService);
    held = await locks.lock(KEY);
    noteSignals();
  });

  afterEach(async () => {
    goOn.resolve();
    await held.unlock();
    await app.close();
  });

  /** A mock would keep them. */
  function noteSignals(): void {
    const withLock = locks.withLock.bind(locks) as (...args: unknown[]) => Promise<unknown>;
    const noting = (...args: [unknown, unknown, { signal?: AbortSignal }]) => {
      signals.push(new WeakRef(args[2].signal!));
      return withLock(...args);
    };
    Object.assign(locks, { withLock: noting });
  }

  const get = (path: string) => request(app.getHttpServer()).get(`/${path}`);
  const alive = (references: readonly WeakRef<object>[]) => references.filter((each) => each.deref()).length;

  // Each wrapper calls the one before: after thousands of tries each event overflowed the stack.
  it.each(['events', 'plain'])('wrap the response once, and leave nothing of most of them (%s)', async (path) => {
    const answer = get(path).then(({ text }) => text);
    await until(() => tries === TRIES);
    expect(wrappers.write.size).toBeLessThanOrEqual(2);
    expect(wrappers.writeHead.size).toBeLessThanOrEqual(2);
    expect(clientsGone.size).toBe(1);
    expect([errors.length, signals.length]).toEqual([TRIES, TRIES]);
    await until(() => {
      collectGarbage();
      return alive(errors) < FEW && alive(signals) < FEW;
    });
    await held.unlock();
    goOn.resolve();
    expect(await answer).toContain('done');
  });

  it('the first of several tries that fail at once is answered with "Retry-After"', async () => {
    const { status, headers } = await get('at-once');
    expect([status, Number(headers['retry-after']) > 0]).toEqual([409, true]);
  });
});
