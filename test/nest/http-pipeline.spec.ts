import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  type INestApplication,
  Injectable,
  Module,
  type ModuleMetadata,
  type NestInterceptor,
  Param,
  ParseIntPipe,
  type PipeTransform,
  Post,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import { CurrentLock, Lock, LockExceptionFilter, LockInterceptor, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { map, Observable, of } from 'rxjs';
import request from 'supertest';
import { PLATFORMS, startApp } from './http-app.js';

/** Notes that it ran, after a moment, as a guard does that asks a database. */
class AsyncGuard implements CanActivate {
  static ran = 0;

  async canActivate() {
    await new Promise(setImmediate);
    AsyncGuard.ran++;
    return true;
  }
}

@Module({ providers: [{ provide: APP_GUARD, useClass: AsyncGuard }] })
class AuthModule {}

class Wrapping implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((data: unknown) => ({ data })));
  }
}

const tenant = new AsyncLocalStorage<string>();

class Tenant implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return tenant.run('ACME', () => next.handle());
  }
}

class Doubled implements PipeTransform<number> {
  transform(value: number) {
    return value * 2;
  }
}

@Catch()
class ExtendingFilter extends BaseExceptionFilter {
  override catch(exception: unknown, host: ArgumentsHost) {
    super.catch(
      exception instanceof HttpException
        ? new HttpException({ mine: exception.getResponse() }, exception.getStatus())
        : exception,
      host,
    );
  }
}

@Catch()
@Injectable()
class ReplyingFilter implements ExceptionFilter {
  constructor(private readonly host: HttpAdapterHost) {}

  catch(exception: unknown, host: ArgumentsHost) {
    const status = exception instanceof HttpException ? exception.getStatus() : 500;
    const mine = exception instanceof HttpException ? exception.getResponse() : 'unknown';
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), { mine }, status);
  }
}

@Catch(HttpException)
@Injectable()
class PassingOnFilter implements ExceptionFilter {
  constructor(private readonly host: HttpAdapterHost) {}

  catch(exception: HttpException, host: ArgumentsHost) {
    const mine = exception.getResponse() as { statusCode: number };
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), { mine }, mine.statusCode);
  }
}

/** `waits` and `refused`, of a handler that asks for its lock when its Observable is read. */
const read = new EventEmitter();

@Controller('accounts')
class AccountsController {
  constructor(private readonly locks: LockService) {}

  @Post('read/:id')
  @UseInterceptors(LockInterceptor)
  read(@Param('id') id: string) {
    return new Observable((subscriber) => {
      this.locks
        .withLock(`account:${id}`, () => subscriber.complete(), { wait: '1m' })
        .catch((error: unknown) => read.emit('refused', error));
      read.emit('waits');
    });
  }

  @Post('iterated/:id')
  @UseInterceptors(LockInterceptor)
  async *iterated(@Param('id') id: string) {
    const waits = this.locks.withLock(`account:${id}`, () => 'in', { wait: '1m' });
    waits.catch((error: unknown) => read.emit('refused', error));
    read.emit('waits');
    yield await waits;
  }

  @Post('tenant/:id')
  @UseInterceptors(Tenant, LockInterceptor)
  tenant() {
    return of(tenant.getStore());
  }

  @Post('plain/:id')
  @WithLock('account:<id>')
  async plain(@Param('id') id: string) {
    return { id };
  }

  @Post('intercepted/:id')
  @UseInterceptors(LockInterceptor)
  @WithLock('account:<id>')
  async intercepted(@Param('id') id: string) {
    return { id };
  }

  @Post('guarded/:id')
  @UseGuards(AsyncGuard)
  @UseInterceptors(Wrapping)
  @WithLock('account:<id>')
  async guarded(@Param('id') id: string) {
    return { id };
  }

  @Post('current/:id')
  @WithLock('account:<accountId>')
  async current(
    @CurrentLock() lock: Lock,
    @Param('id', ParseIntPipe, Doubled) accountId: number,
    @Body('note') note: string,
  ) {
    return { id: accountId, note, isLock: lock instanceof Lock, key: lock.key, fence: lock.fence, held: lock.isHeld };
  }
}

const LOCKS = (options: object = {}) => LockTestingModule.forRoot({ wait: 0, ...options });
let app: INestApplication;

afterEach(() => app.close());

describe.each(PLATFORMS)('on %s', (_platform, adapter) => {
  async function start(
    { imports = [LOCKS()], ...metadata }: ModuleMetadata = {},
    setUp?: (app: INestApplication) => void,
  ) {
    app = await startApp(adapter, { ...metadata, imports, controllers: [AccountsController] }, setUp);
  }

  const post = (path: string) => request(app.getHttpServer()).post(`/accounts/${path}`);

  async function busy(path: string) {
    await using held = await app.get(LockService).lock('account:42');
    const { status, headers, body } = await post(path);
    held.assertHeld();
    return { status, retryAfter: headers['retry-after'], body };
  }
  const BUSY = {
    status: 409,
    retryAfter: '1',
    body: {
      statusCode: 409,
      code: 'LOCK_TIMEOUT',
      message: expect.any(String),
      error: 'Conflict',
      retryable: true,
      retryAfter: 1,
    },
  };

  it.each([
    ['extends BaseExceptionFilter', ExtendingFilter],
    ['asks only whether it is an HttpException', ReplyingFilter],
    ['asks only for the response of an HttpException', PassingOnFilter],
  ])("the app's own catch-all filter that %s formats the right status", async (_style, filter) => {
    await start({ providers: [{ provide: APP_FILTER, useClass: filter }] });
    expect(await busy('plain/42')).toEqual({ ...BUSY, body: { mine: BUSY.body } });
  });

  it("the app's own guards and interceptors still run", async () => {
    await start();
    const ranBefore = AsyncGuard.ran;
    expect((await post('guarded/42').expect(201)).body).toEqual({ data: { id: '42' } });
    expect(await busy('guarded/42')).toEqual(BUSY);
    expect(AsyncGuard.ran).toBe(ranBefore + 2);
  });

  it.each([
    ['useGlobalGuards', {}, (app: INestApplication) => app.useGlobalGuards(new AsyncGuard())],
    ['APP_GUARD', { providers: [{ provide: APP_GUARD, useClass: AsyncGuard }] }, undefined],
    ['APP_GUARD of a module imported before', { imports: [AuthModule, LOCKS()] }, undefined],
    ['APP_GUARD of a module imported after', { imports: [LOCKS(), AuthModule] }, undefined],
  ])(
    "the response has Retry-After although the app's own guard, by %s, takes its time",
    async (_how, metadata, setUp) => {
      await start(metadata, setUp);
      expect(await busy('plain/42')).toEqual(BUSY);
    },
  );

  it('http: false leaves the status and drops Retry-After, but for handlers with LockInterceptor', async () => {
    await start({ imports: [LOCKS({ http: false })] });
    expect(await busy('plain/42')).toEqual({ ...BUSY, retryAfter: undefined });
    expect(await busy('intercepted/42')).toEqual(BUSY);
  });

  it.each([
    ['an Observable', 'read'],
    ['an async generator', 'iterated'],
  ])(
    'http: false with LockInterceptor ends the wait of a client that has gone, also one of %s',
    async (_what, path) => {
      await start({ imports: [LOCKS({ http: false })] });
      await using held = await app.get(LockService).lock('account:42');
      const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
      const waits = once(read, 'waits');
      const gone = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: `/accounts/${path}/42` });
      gone.on('error', () => undefined).end();
      await waits;
      const refused = once(read, 'refused');
      gone.destroy();
      expect(await refused).toMatchObject([{ status: 499 }]);
      held.assertHeld();
    },
  );

  it.each<[string, unknown]>([
    ['the default response', undefined],
    ['the string of an "exceptionFactory"', 'Locked'],
  ])('LockExceptionFilter made with new sends %s', async (_what, text) => {
    const factory = text === undefined ? {} : { exceptionFactory: () => new HttpException('Locked', 423) };
    await start({ imports: [LOCKS(factory)] }, (app) => app.useGlobalFilters(new LockExceptionFilter()));
    const own = { status: 423, retryAfter: '1', body: { statusCode: 423, message: text } };
    expect(await busy('plain/42')).toEqual(text === undefined ? BUSY : own);
  });

  it.each([true, false])(
    'LockInterceptor keeps the context of an interceptor before it, with http: %s',
    async (http) => {
      await start({ imports: [LOCKS({ http })] });
      expect((await post('tenant/42').expect(201)).text).toBe('ACME');
    },
  );

  it('LockInterceptor may stand on a handler that has it already', async () => {
    await start();
    expect(await busy('intercepted/42')).toEqual(BUSY);
  });

  it('@CurrentLock() gives the lock beside @Param, @Body and pipes', async () => {
    await start();
    const { body } = await post('current/21').send({ note: 'rent' }).expect(201);
    expect(body).toEqual({
      id: 42,
      note: 'rent',
      isLock: true,
      key: 'account:42',
      fence: expect.any(Number),
      held: true,
    });
  });

  it('a pipe that refuses the argument runs before the lock is taken', async () => {
    await start();
    const { body } = await post('current/x').expect(400);
    expect(body).toEqual({ statusCode: 400, message: expect.stringContaining('numeric'), error: 'Bad Request' });
  });
});
