import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  Get,
  type INestApplication,
  Injectable,
  type NestInterceptor,
  Param,
  type PipeTransform,
  UseInterceptors,
} from '@nestjs/common';
import { CurrentLock, type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { defer, finalize, first, lastValueFrom, mergeMap, Observable, of, retry, Subject } from 'rxjs';
import request from 'supertest';
import { type Deferred, deferred, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

jest.setTimeout(30_000);

/** How many handlers the limiter lets in at a time. */
const LIMIT = 2;
/** How many orders it is asked for. */
const KEYS = 5;

let locks: LockService;
let goOn: Deferred;
/** The context in which the client of another service has connected, and gets all of its replies. */
let connected: AsyncResource | undefined;
const users = new AsyncLocalStorage<string>();
const inside = new Map<string, number>();

/** Asks another service before it calls the handler. The client connects when it is first used. */
class Asks implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return answer().pipe(mergeMap(() => next.handle()));
  }
}

/** Sets what the handler reads, once the other service has answered. */
class Identifies implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return answer().pipe(mergeMap(() => users.run('Alice', () => next.handle())));
  }
}

function answer(): Observable<void> {
  connected ??= new AsyncResource('client');
  const client = connected;
  return new Observable((subscriber) => {
    setImmediate(() =>
      client.runInAsyncScope(() => {
        subscriber.next();
        subscriber.complete();
      }),
    );
  });
}

let free = LIMIT;
const queue: Subject<void>[] = [];

/** The end of one request starts the handler of the next one, in its async context. */
class Limits implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    const turn = defer(() => {
      if (free > 0) {
        free--;
        return of(undefined);
      }
      const waiting = new Subject<void>();
      queue.push(waiting);
      return waiting.pipe(first());
    });
    const end = (): void => {
      const waiting = queue.shift();
      if (waiting) waiting.next();
      else free++;
    };
    return turn.pipe(mergeMap(() => next.handle().pipe(finalize(end))));
  }
}

/** Calls the handler again when it has failed. It stands below the lock, so it runs outside. */
class Retries implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(retry(1));
  }
}

/** Holds the lock of the order around the handler. It stands below the lock of the request, so it runs outside. */
class Holds implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Promise<Observable<unknown>> {
    return locks.withLock('order:1', async () => of(await lastValueFrom(next.handle())));
  }
}

@Injectable()
class Audit {
  @WithLock('order:<id>', { wait: 0 })
  async note(id: string) {
    return locks.current()?.key === `order:${id}` && locks.current()!.isHeld;
  }
}

@Injectable()
class Notes implements PipeTransform {
  constructor(private readonly audit: Audit) {}

  async transform(id: string) {
    return (await this.audit.note(id)) ? id : `${id}, not noted`;
  }
}

const held = () => Promise.resolve(locks.current()?.key);

@Controller()
class Orders {
  readonly #tried = new Set<string>();

  constructor(private readonly audit: Audit) {}

  @Get('asked/:id')
  @UseInterceptors(Asks)
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  async asked(@Param('id', Notes) id: string, @CurrentLock() lock?: Lock) {
    return { id, lock: lock!.key, isHeld: lock!.isHeld, current: await held(), noted: await this.audit.note(id) };
  }

  @Get('held/:id')
  @UseInterceptors(Asks)
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  async held(@CurrentLock() lock?: Lock) {
    const key = lock!.key;
    await goOn.promise;
    return { lock: key, isHeld: lock!.isHeld };
  }

  @Get('stream/:id')
  @UseInterceptors(Asks)
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  stream(@Param('id') id: string) {
    return defer(async () => ({ noted: await this.audit.note(id) }));
  }

  @Get('identified/:id')
  @UseInterceptors(Identifies)
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  async identified(@CurrentLock() lock?: Lock) {
    return { user: users.getStore(), lock: lock!.key };
  }

  @Get('retried/:id')
  @UseInterceptors(Asks)
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  @UseInterceptors(Retries)
  async retried(@Param('id') id: string, @CurrentLock() lock?: Lock) {
    if (!this.#tried.has(id)) {
      this.#tried.add(id);
      throw new Error('of the first try');
    }
    return { lock: lock!.key, isHeld: lock!.isHeld };
  }

  @Get('outside/:id')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  @UseInterceptors(Asks)
  async outside(@CurrentLock() lock?: Lock) {
    return { lock: lock!.key, isHeld: lock!.isHeld, job: locks.current('order:1')?.key };
  }

  @Get('around/:id')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  @UseInterceptors(Holds)
  async around(@CurrentLock() lock?: Lock) {
    return { lock: lock!.key, isHeld: lock!.isHeld };
  }

  @Get('both/:id')
  @UseInterceptors(Asks)
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  @UseInterceptors(Asks)
  @WithLock('customer:<params.id>', { scope: 'request', wait: 0 })
  async both(@Param('id') id: string) {
    const keys = [`order:${id}`, `customer:${id}`];
    return { current: keys.map((key) => locks.current(key)?.key) };
  }

  @Get('limited/:id')
  @UseInterceptors(Limits)
  @WithLock('order:<params.id>', { scope: 'request', wait: '20s' })
  async limited(@Param('id') id: string, @CurrentLock() lock?: Lock) {
    const now = (inside.get(id) ?? 0) + 1;
    inside.set(id, now);
    await goOn.promise;
    await new Promise(setImmediate);
    inside.set(id, inside.get(id)! - 1);
    return { lock: lock!.key, isHeld: lock!.isHeld, inside: now };
  }
}

describe.each(PLATFORMS)(
  "on %s, a handler with scope: 'request' that an interceptor calls in another async context",
  (_platform, adapter) => {
    let app: INestApplication;

    beforeEach(async () => {
      connected = undefined;
      goOn = deferred();
      inside.clear();
      app = await startApp(adapter, {
        imports: [LockTestingModule.forRoot()],
        controllers: [Orders],
        providers: [Audit],
      });
      locks = app.get(LockService);
    });

    afterEach(async () => {
      goOn.resolve();
      await app.close();
    });

    const get = async (path: string): Promise<unknown> => {
      const { status, body } = await request(app.getHttpServer()).get(`/${path}`);
      return { status, ...(body as object) };
    };

    const asked = (id: string) => {
      const lock = `order:${id}`;
      return { status: 200, id, lock, isHeld: true, current: lock, noted: true };
    };

    it('runs in the lock of its own request, with its pipes, when that of the first request has been released', async () => {
      for (const id of ['1', '2', '3']) expect(await get(`asked/${id}`)).toEqual(asked(id));
    });

    it('runs in the lock of its own request when the client of the interceptor has connected at boot', async () => {
      connected = new AsyncResource('client');
      expect(await get('asked/1')).toEqual(asked('1'));
      expect(await Promise.all(['2', '3', '4'].map((id) => get(`asked/${id}`)))).toEqual(['2', '3', '4'].map(asked));
    });

    it('runs in the lock of its own request while that of the first request is still held', async () => {
      const first = get('held/1');
      await until(() => locks.isLocked('order:1'));
      await until(() => connected !== undefined);
      expect(await get('asked/2')).toEqual(asked('2'));
      goOn.resolve();
      expect(await first).toEqual({ status: 200, lock: 'order:1', isHeld: true });
    });

    it.each(['1', '2'])('reads its Observable inside the lock of its own request (order %s)', async (id) => {
      await get('asked/0');
      expect(await get(`stream/${id}`)).toEqual({ status: 200, noted: true });
    });

    it('keeps what the interceptor has set for it in that context', async () => {
      await get('asked/0');
      expect(await get('identified/1')).toEqual({ status: 200, user: 'Alice', lock: 'order:1' });
    });

    it('is called again in the lock of its own request', async () => {
      await get('asked/0');
      expect(await get('retried/1')).toEqual({ status: 200, lock: 'order:1', isHeld: true });
    });

    it('runs in both locks of its own request', async () => {
      expect(await get('both/1')).toEqual({ status: 200, current: ['order:1', 'customer:1'] });
      expect(await get('both/2')).toEqual({ status: 200, current: ['order:2', 'customer:2'] });
    });

    it('does not enter the lock of a job in whose context the client of an interceptor outside has connected', async () => {
      const job = locks.withLock('order:1', () => {
        connected = new AsyncResource('client');
        return goOn.promise;
      });
      await until(() => connected !== undefined);
      expect(await get('outside/1')).toMatchObject({ status: 409, code: 'LOCK_TIMEOUT' });
      expect(await get('outside/2')).toEqual({ status: 200, lock: 'order:2', isHeld: true });
      goOn.resolve();
      await job;
      expect(await get('outside/1')).toEqual({ status: 200, lock: 'order:1', isHeld: true, job: 'order:1' });
    });

    it('is nested in a lock that an interceptor of its own request holds around it', async () => {
      expect(await get('around/1')).toEqual({ status: 200, lock: 'order:1', isHeld: true });
    });

    it('runs in the lock of its own request when the end of another request has started it', async () => {
      const ids = Array.from({ length: 20 }, (_, n) => String(n % KEYS));
      const all = Promise.all(ids.map((id) => get(`limited/${id}`)));
      await until(() => queue.length === KEYS - LIMIT);
      goOn.resolve();
      expect(await all).toEqual(ids.map((id) => ({ status: 200, lock: `order:${id}`, isHeld: true, inside: 1 })));
    });
  },
);
