import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
  type NestInterceptor,
  Param,
  type PipeTransform,
  UseInterceptors,
} from '@nestjs/common';
import { CurrentLock, type Lock, type LockError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { catchError, defer, lastValueFrom, map, Observable, of, retry, throwError } from 'rxjs';
import request from 'supertest';
import { turn, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

const KEY = 'order:7';
type Step = 'inner interceptor' | 'pipe' | 'body' | 'second try' | 'Observable';

let locks: LockService;
/** Where another caller takes the key from the request, and what the handler does then. */
let takenAt: Step | undefined;
let taken: Lock | undefined;
let work: (lock: Lock) => unknown;
const ran: string[] = [];
const failures: unknown[] = [];

/** Another caller is not nested in the request. */
const outside = AsyncLocalStorage.snapshot();

async function reach(step: Step): Promise<void> {
  await turn();
  if (step === takenAt) await outside(takeKey);
}

async function takeKey(): Promise<void> {
  await locks.forceUnlock(KEY);
  taken = await locks.lock(KEY);
}

class Inner implements NestInterceptor {
  async intercept(_context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    await reach('inner interceptor');
    return next.handle();
  }
}

class Retrying implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(retry({ count: 1, delay: () => reach('second try').then(() => 0) }));
  }
}

/** Tries again at once, without end. */
class Insisting implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(retry());
  }
}

/** The same, by a loop. */
class Looping implements NestInterceptor {
  async intercept(_context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    while (taken?.isHeld ?? true) {
      try {
        return of(await lastValueFrom(next.handle()));
      } catch {
        // Again.
      }
    }
    throw new Error('the test is over');
  }
}

class Noting implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const noted = catchError((error: unknown) => (failures.push(error), throwError(() => error)));
    return next.handle().pipe(noted);
  }
}

class SlowPipe implements PipeTransform {
  async transform(value: string) {
    await reach('pipe');
    return value;
  }
}

function run(how: string, lock: Lock): unknown {
  ran.push(`${how}, ${lock.isHeld ? 'locked' : 'not locked'}`);
  return work(lock);
}

// Of the interceptors, what is above is inside of what is below.
@Controller()
class Orders {
  @Get('throw/:id')
  @UseInterceptors(Inner)
  @WithLock(KEY, { scope: 'request', wait: 0 })
  @UseInterceptors(Noting)
  throwing(@Param('id', SlowPipe) _id: string, @CurrentLock() lock?: Lock) {
    return run('throw', lock!);
  }

  @Get('ignore/:id')
  @UseInterceptors(Inner)
  @WithLock(KEY, { scope: 'request', wait: 0, onLost: 'ignore' })
  @UseInterceptors(Noting)
  ignoring(@Param('id', SlowPipe) _id: string, @CurrentLock() lock?: Lock) {
    return run('ignore', lock!);
  }

  @Get('throw/retried/inside')
  @UseInterceptors(Retrying)
  @WithLock(KEY, { scope: 'request', wait: 0 })
  retriedInside(@CurrentLock() lock?: Lock) {
    return run('throw', lock!);
  }

  @Get('ignore/retried/inside')
  @UseInterceptors(Retrying)
  @WithLock(KEY, { scope: 'request', wait: 0, onLost: 'ignore' })
  ignoringRetriedInside(@CurrentLock() lock?: Lock) {
    return run('ignore', lock!);
  }

  @Get('throw/retried/outside')
  @WithLock(KEY, { scope: 'request', wait: 0 })
  @UseInterceptors(Retrying)
  retriedOutside(@CurrentLock() lock?: Lock) {
    return run('throw', lock!);
  }

  @Get('insisting/throw')
  @UseInterceptors(Insisting)
  @WithLock(KEY, { scope: 'request', wait: 0 })
  insisting(@CurrentLock() lock?: Lock) {
    return run('throw', lock!);
  }

  @Get('looping/ignore')
  @UseInterceptors(Looping)
  @WithLock(KEY, { scope: 'request', wait: 0, onLost: 'ignore' })
  looping(@CurrentLock() lock?: Lock) {
    return run('ignore', lock!);
  }

  @Get('throw/both/:id')
  @UseInterceptors(Inner)
  @WithLock('customer:1', { scope: 'request', wait: 0 })
  @WithLock(KEY, { scope: 'request', wait: 0 })
  both() {
    ran.push('both');
  }
}

describe.each(PLATFORMS)("on %s, a lock with scope: 'request' that another caller takes", (_platform, adapter) => {
  let app: INestApplication;

  beforeEach(async () => {
    takenAt = taken = undefined;
    work = () => 'done';
    ran.length = failures.length = 0;
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Orders] });
    locks = app.get(LockService);
  });

  afterEach(async () => {
    await taken?.unlock();
    await until(async () => !(await locks.isLocked(KEY)));
    await app.close();
  });

  async function get(path: string): Promise<[status: number, code: unknown]> {
    const { status, body } = await request(app.getHttpServer()).get(`/${path}`);
    return [status, (body as { code?: unknown }).code];
  }

  const failing = async () => {
    await reach('body');
    throw new HttpException('no', 418);
  };

  describe.each(['throw', 'ignore'])("with onLost: '%s'", (onLost) => {
    it.each(['inner interceptor', 'pipe'] as const)(
      'a body does not run beside another caller that took its lock in the step %j',
      async (step) => {
        takenAt = step;
        expect(await get(`${onLost}/7`)).toEqual([503, 'LOCK_LOST']);
        expect([ran, taken!.isHeld]).toEqual([[], true]);
      },
    );

    it('a body does not run again when its lock is lost before the second try', async () => {
      takenAt = 'second try';
      work = failing;
      expect(await get(`${onLost}/retried/inside`)).toEqual([503, 'LOCK_LOST']);
      expect([ran, taken!.isHeld]).toEqual([[`${onLost}, locked`], true]);
    });

    it('a body that fails while its lock is lost has its error reported together with the loss', async () => {
      takenAt = 'body';
      work = failing;
      expect(await get(`${onLost}/7`)).toEqual(onLost === 'throw' ? [503, 'LOCK_LOST'] : [418, undefined]);
      const [failure] = failures as [LockError];
      expect(onLost === 'throw' ? failure.cause : failure).toMatchObject({ status: 418 });
    });

    it('a body that ends well while its lock is lost has the loss reported, unless that is ignored', async () => {
      takenAt = 'body';
      work = () => reach('body').then(() => ({ code: 'done' }));
      expect(await get(`${onLost}/7`)).toEqual(onLost === 'throw' ? [503, 'LOCK_LOST'] : [200, 'done']);
    });
  });

  it.each(['insisting/throw', 'looping/ignore'])(
    'an interceptor that tries without end, though its lock is lost, holds up neither the process nor its client (%s)',
    async (path) => {
      takenAt = 'body';
      work = failing;
      expect(await get(path)).toEqual([503, 'LOCK_LOST']);
      expect(taken!.isHeld).toBe(true);
    },
  );

  it('a body does not run again when its lock is lost before a second try that takes it anew', async () => {
    takenAt = 'second try';
    work = failing;
    expect(await get('throw/retried/outside')).toEqual([409, 'LOCK_TIMEOUT']);
    expect([ran, taken!.isHeld]).toEqual([['throw, locked'], true]);
  });

  it('a body does not run when one of its two locks is lost', async () => {
    takenAt = 'inner interceptor';
    expect(await get('throw/both/7')).toEqual([503, 'LOCK_LOST']);
    expect(ran).toEqual([]);
  });

  it('an Observable that the handler has promised is not read when its lock is lost before', async () => {
    takenAt = 'Observable';
    work = () => reach('Observable').then(() => new Observable((reader) => (ran.push('read'), reader.complete())));
    expect(await get('throw/7')).toEqual([503, 'LOCK_LOST']);
    expect(ran).toEqual(['throw, locked']);
  });

  it('an Observable of the handler that is silent is left at once when its lock is lost', async () => {
    work = () => new Observable(() => (void outside(takeKey), () => ran.push('left')));
    expect(await get('throw/7')).toEqual([503, 'LOCK_LOST']);
    expect(ran).toEqual(['throw, locked', 'left']);
  });

  it('an Observable of the handler that ends without a value after a loss is answered with the loss', async () => {
    takenAt = 'Observable';
    work = () => new Observable((reader) => void reach('Observable').then(() => reader.complete()));
    expect(await get('throw/7')).toEqual([503, 'LOCK_LOST']);
  });

  it('a lock that the handler itself has released is no loss', async () => {
    work = async (lock) => {
      await lock.unlock();
      return { code: 'done' };
    };
    expect(await get('throw/7')).toEqual([200, 'done']);
    work = (lock) => lock.unlock().then(() => Promise.reject(new HttpException('no', 418)));
    expect(await get('throw/7')).toEqual([418, undefined]);
  });

  it("a lock that is released before the handler's Observable is read, or by the Observable, is no loss", async () => {
    work = (lock) => lock.unlock().then(() => of({ code: 'done' }));
    expect(await get('throw/7')).toEqual([200, 'done']);
    work = (lock) => defer(() => lock.unlock()).pipe(map(() => ({ code: 'done' })));
    expect(await get('throw/7')).toEqual([200, 'done']);
  });

  it('a call of the handler that comes when the request is over rejects, and does not throw', async () => {
    let callAgain!: () => unknown;
    work = (lock) => {
      const orders = app.get(Orders);
      callAgain = AsyncLocalStorage.bind(() => orders.throwing('7', lock));
      return 'done';
    };
    await get('throw/7');
    await until(async () => !(await locks.isLocked(KEY)));
    await expect(callAgain()).rejects.toMatchObject({ status: 499 });
    expect(ran).toEqual(['throw, locked']);
  });
});
