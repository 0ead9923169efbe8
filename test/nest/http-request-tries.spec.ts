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
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { concatMap, defer, EMPTY, from, merge, mergeMap, type Observable, retry, toArray } from 'rxjs';
import request from 'supertest';
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
    goOn = deferred();
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

  it('a try of a handler does not wait for itself', async () => {
    const { text } = await get('itself');
    expect([text, runs]).toEqual(['locked', 1]);
  });
});
