import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  Get,
  type INestApplication,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { catchError, concat, concatMap, defer, map, Observable, of, type Subscriber, take, toArray } from 'rxjs';
import request from 'supertest';
import { until } from '../support/deferred.js';
import { Audit, KEY } from './audit.js';
import { PLATFORMS, startApp } from './http-app.js';

let locks: LockService;

/** The async context of no request, in which a client reads its replies that has connected once for all. */
const ofClient = AsyncLocalStorage.snapshot();
/** How many replies somebody waits for. */
let waiting = 0;

/** Sends a message, as a `ClientProxy` of Nest does. */
const send = (reply: (reader: Subscriber<string>) => void): Observable<string> =>
  new Observable((reader) => {
    waiting++;
    const timer = ofClient(() => setImmediate(() => reply(reader)));
    return () => {
      waiting--;
      clearImmediate(timer);
    };
  });

/** Calls a method that locks the same key for each value, for an error, and at the end. */
@Injectable()
class Notes implements NestInterceptor {
  constructor(private readonly audit: Audit) {}

  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    const values = next.handle().pipe(
      catchError((error: Error) => of(error.message)),
      concatMap((value: string) => this.audit.note(value)),
    );
    return concat(
      values,
      defer(() => this.audit.note('end')),
    ).pipe(toArray());
  }
}

/** Calls the handler again for its first value. */
class CallsAgain implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(concatMap(() => next.handle()));
  }
}

class SeesNoLock implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((value: unknown) => [value, locks.current(KEY) ? 'inside' : 'outside']));
  }
}

const complete = (reader: Subscriber<string>): void => {
  reader.next('done');
  reader.complete();
};

@Controller()
@UseInterceptors(SeesNoLock)
class Orders {
  @Get('value')
  @UseInterceptors(Notes)
  @WithLock(KEY, { scope: 'request' })
  value() {
    return send(complete);
  }

  @Get('promised')
  @UseInterceptors(Notes)
  @WithLock(KEY, { scope: 'request' })
  async promised() {
    return send(complete);
  }

  @Get('first')
  @UseInterceptors(Notes)
  @WithLock(KEY, { scope: 'request' })
  first() {
    return send((reader) => reader.next('done')).pipe(take(1));
  }

  @Get('error')
  @UseInterceptors(Notes)
  @WithLock(KEY, { scope: 'request' })
  error() {
    return send((reader) => reader.error(new Error('refused')));
  }

  @Get('again')
  @UseInterceptors(CallsAgain)
  @WithLock(KEY, { scope: 'request', wait: 0 })
  again() {
    return send(complete);
  }
}

describe.each(PLATFORMS)('a handler that returns the reply of a client, on %s', (_platform, adapter) => {
  let app: INestApplication;

  beforeEach(async () => {
    app = await startApp(adapter, {
      imports: [LockTestingModule.forRoot()],
      controllers: [Orders],
      providers: [Audit],
    });
    locks = app.get(LockService);
  });

  afterEach(async () => {
    await until(async () => !(await locks.isLocked(KEY)));
    await app.close();
  });

  it.each([
    ['value', ['done, noted', 'end, noted']],
    ['promised', ['done, noted', 'end, noted']],
    ['first', ['done, noted', 'end, noted']],
    ['error', ['refused, noted', 'end, noted']],
    ['again', 'done'],
  ])(
    'what the interceptors above do after it is inside the lock, what those below do is not (%s)',
    async (path, all) => {
      for (let requests = 0; requests < 3; requests++) {
        const { body } = await request(app.getHttpServer()).get(`/${path}`).expect(200);
        expect([body, waiting]).toEqual([[all, 'outside'], 0]);
      }
    },
  );
});
