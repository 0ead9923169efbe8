import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  HttpStatus,
  type INestApplication,
  Injectable,
  Logger,
  Param,
  Post,
  Sse,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import {
  getLockServiceToken,
  InjectLocks,
  isLockError,
  LockError,
  type LockExceptionFactory,
  LockInterceptor,
  LockService,
  LockTimeoutError,
  LockUnavailableError,
  RedisLockModule,
  WithLock,
} from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent } from 'node:http';
import { interval, map, mergeMap, Observable, take } from 'rxjs';
import request from 'supertest';
import { PLATFORMS, startApp } from './http-app.js';

/** The async context of no request. */
const ofClient = AsyncLocalStorage.snapshot();

@Injectable()
class Accounts {
  @WithLock('account:<id>')
  async withdraw(id: string) {
    return { id };
  }
}

@Controller('accounts')
class AccountsController {
  constructor(
    private readonly accounts: Accounts,
    private readonly locks: LockService,
  ) {}

  @Post(':id/handler')
  @WithLock('account:<id>')
  async handler(@Param('id') id: string) {
    return { id };
  }

  @Post(':id/service')
  service(@Param('id') id: string) {
    return this.accounts.withdraw(id);
  }

  @Post(':id/by-hand')
  byHand(@Param('id') id: string) {
    return this.locks.withLock(`account:${id}`, () => id);
  }

  @Post(':id/lock')
  lock(@Param('id') id: string) {
    return this.locks.lock(`account:${id}`);
  }

  @Post(':id/request')
  @WithLock('account:<params.id>', { scope: 'request' })
  async request(@Param('id') id: string) {
    return { id };
  }

  @Post(':id/stream')
  @WithLock('account:<id>')
  stream(@Param('id') id: string): Observable<string> {
    return interval(1).pipe(
      take(1),
      map(() => id),
    );
  }

  @Sse(':id/events')
  @WithLock('account:<id>', { wait: '50ms' })
  events(@Param('id') id: string): Observable<string> {
    return this.stream(id);
  }

  @Post(':id/intercepted')
  @UseInterceptors(LockInterceptor)
  intercepted(@Param('id') id: string) {
    return this.accounts.withdraw(id);
  }

  @Post(':id/handled')
  handled(@Param('id') id: string) {
    return this.accounts.withdraw(id).catch((error: unknown) => ({
      code: isLockError(error) && error.code,
      isTimeout: error instanceof LockTimeoutError,
    }));
  }

  @Post(':id/skipped')
  @WithLock('account:<id>', { onTimeout: 'skip' })
  async skipped(@Param('id') _id: string): Promise<void> {}

  @Post(':id/lost')
  @WithLock('account:<id>')
  async lost(@Param('id') id: string) {
    await this.locks.forceUnlock(`account:${id}`);
  }

  @Post(':id/assert')
  @WithLock('account:<id>', { onLost: 'ignore' })
  async assert(@Param('id') id: string) {
    const lock = this.locks.current(`account:${id}`)!;
    await this.locks.forceUnlock(lock.key);
    lock.assertHeld();
  }

  @Post(':id/lost-request')
  @WithLock('account:<params.id>', { scope: 'request' })
  async lostInRequest(@Param('id') id: string) {
    const lock = this.locks.current(`account:${id}`)!;
    await this.locks.forceUnlock(lock.key);
    lock.assertHeld();
  }

  @Post(':id/invalid')
  @WithLock(() => '')
  async invalid(@Param('id') _id: string) {}

  @Post(':id/mistaken')
  mistaken() {
    return this.locks.withLock('a', () => 1, { wait: -1 });
  }

  /** Goes on where the reply of a client arrives that has connected elsewhere. */
  @Post(':id/reply')
  reply(@Param('id') id: string) {
    const reply = new Observable<void>((reader) => {
      ofClient(() => setImmediate(() => (reader.next(), reader.complete())));
    });
    return reply.pipe(mergeMap(() => this.accounts.withdraw(id)));
  }

  @Post(':id/unwired')
  unwired(@Param('id') id: string) {
    return new Accounts().withdraw(id);
  }
}

const locked: LockExceptionFactory = (error) =>
  error instanceof LockTimeoutError ? new HttpException({ title: 'Locked', busy: true }, HttpStatus.LOCKED) : undefined;

let app: INestApplication;

afterEach(async () => {
  jest.restoreAllMocks();
  Logger.overrideLogger(false);
  await app.close();
});

/** Hears what the library logs, level first. */
function hear(): string[] {
  const lines: string[] = [];
  const level = (name: string) => (line: string) => lines.push(`${name} ${line}`);
  Logger.overrideLogger({ log: level('log'), warn: level('warn'), error: level('error') });
  return lines;
}

const post = (path: string) => request(app.getHttpServer()).post(`/accounts/${path}`);

describe.each(PLATFORMS)('The exception of exceptionFactory, on %s,', (_platform, adapter) => {
  async function start(
    exceptionFactory: LockExceptionFactory,
    options: object = {},
    filters: ExceptionFilter[] = [],
    controllers: Type[] = [AccountsController],
    setUp: (app: INestApplication) => void = () => undefined,
  ) {
    const imports = [LockTestingModule.forRoot({ wait: 0, shutdownGrace: 0, exceptionFactory, ...options })];
    app = await startApp(adapter, { imports, controllers, providers: [Accounts] }, (app) =>
      setUp(app.useGlobalFilters(...filters)),
    );
  }

  const hold = (key = 'account:42') => app.get(LockService).lock(key);

  it.each(['handler', 'service', 'by-hand', 'lock', 'request', 'stream', 'intercepted', 'reply'])(
    'the exception of exceptionFactory answers a time-out, and Retry-After stays (%s)',
    async (way) => {
      await start(locked);
      await hold();
      const lines = hear();
      const { status, headers, body } = await post(`42/${way}`);
      expect([status, headers['retry-after'], body]).toEqual([423, '1', { title: 'Locked', busy: true }]);
      expect(lines).toEqual([expect.stringMatching(/^warn POST \/accounts\/:id\/.*"account:42"/)]);
    },
  );

  it('the default response is sent where exceptionFactory returns undefined', async () => {
    await start(() => undefined);
    await hold();
    const { status, headers, body } = await post('42/handler');
    expect([status, headers['retry-after'], body]).toMatchObject([409, '1', { code: 'LOCK_TIMEOUT', retryAfter: 1 }]);
  });

  it.each(['lost', 'assert', 'lost-request'])('a lost lock has its exception and no Retry-After (%s)', async (way) => {
    await start((error) => new HttpException(error.code, 502));
    const { status, headers, body } = await post(`43/${way}`);
    expect([status, headers['retry-after'], body]).toEqual([502, undefined, { statusCode: 502, message: 'LOCK_LOST' }]);
  });

  it('the exception of exceptionFactory answers for a bad value in a key, and not for mistakes in code', async () => {
    const factory = jest.fn<LockExceptionFactory>(() => new HttpException('Made', 422));
    await start(factory);
    await post('43/invalid').expect(422);
    await post('43/mistaken').expect(500);
    await post('43/unwired').expect(500);
    expect(factory.mock.calls.map(([error]) => error.code)).toEqual(['LOCK_KEY_INVALID']);
  });

  it('exceptionFactory is called once, with all that it needs, and not for errors that nobody receives', async () => {
    const seen: unknown[] = [];
    await start((error, context: ExecutionContext) => {
      const { url } = context.switchToHttp().getRequest<{ url: string }>();
      seen.push([error.getStatus(), error.detail, url, context.getHandler().name]);
      return new HttpException({ ...(error.getResponse() as object), statusCode: 423, url }, 423);
    });
    await hold();
    expect((await post('42/service').expect(423)).body).toMatchObject({
      statusCode: 423,
      code: 'LOCK_TIMEOUT',
      retryAfter: 1,
      url: '/accounts/42/service',
    });
    expect((await post('42/handled').expect(201)).body).toEqual({ code: 'LOCK_TIMEOUT', isTimeout: true });
    await post('42/skipped').expect(201);
    expect(seen).toEqual([[409, expect.stringContaining('"account:42"'), '/accounts/42/service', 'service']]);
  });

  it('exceptionFactory is not called for an event stream that has begun', async () => {
    let calls = 0;
    await start(() => void calls++);
    await hold();
    const { text } = await request(app.getHttpServer()).get('/accounts/42/events').expect(200);
    expect(text).toMatch(/^event: error\nid: 1\ndata: Another request/m);
    expect(calls).toBe(0);
  });

  it('exceptionFactory is not called for a middleware, also not with the last request of the connection', async () => {
    const factory = jest.fn<LockExceptionFactory>(() => new HttpException('Made', 423));
    let isLocked = false;
    const middleware = (_request: unknown, _response: unknown, next: (error?: unknown) => void): void =>
      isLocked ? void hold().catch(next) : next();
    await start(factory, {}, [], [AccountsController], (app) => app.use(middleware));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    await post('1/service').agent(agent).expect(201);
    isLocked = true;
    await hold();
    await post('1/service').agent(agent).expect(409);
    agent.destroy();
    expect(factory).not.toHaveBeenCalled();
  });

  it("the app's own filter gets the lock error, with the response of exceptionFactory", async () => {
    @Catch(LockError)
    class Own implements ExceptionFilter {
      catch(error: LockError, host: ArgumentsHost) {
        const { httpAdapter } = app.get(HttpAdapterHost);
        httpAdapter.reply(
          host.switchToHttp().getResponse(),
          { mine: error.getResponse(), message: error.message, code: error.code },
          error.getStatus(),
        );
      }
    }
    await start(() => new HttpException('Somebody is at it.', 423), {}, [new Own()]);
    await hold();
    const { headers, body } = await post('42/service').expect(423);
    expect([headers['retry-after'], body]).toEqual([
      '1',
      { mine: 'Somebody is at it.', message: 'Somebody is at it.', code: 'LOCK_TIMEOUT' },
    ]);
  });

  it('exceptionFactory can set its own Retry-After', async () => {
    await start((_error, context) => {
      const response = context.switchToHttp().getResponse<{ header(name: string, value: string): void }>();
      response.header('Retry-After', '7');
      return new HttpException('Locked', 423);
    });
    await hold();
    expect((await post('42/service').expect(423)).headers['retry-after']).toBe('7');
  });

  it('exceptionFactory is called only under LockInterceptor where http is false', async () => {
    await start(locked, { http: false });
    await hold();
    await post('42/service').expect(409);
    await post('42/intercepted').expect(423);
  });

  it.each<[string, unknown, string]>([
    [
      'throws',
      () => {
        throw new TypeError('no such property');
      },
      '"exceptionFactory" threw no such property',
    ],
    ['returns a string', () => 'Locked', '"exceptionFactory" returned "Locked"'],
    [
      'returns an error that is no HttpException',
      () => new Error('Locked'),
      '"exceptionFactory" returned an object (Error)',
    ],
    ['returns null', () => null, '"exceptionFactory" returned null'],
    [
      'is asynchronous',
      async () => Promise.reject(new Error('late')),
      '"exceptionFactory" returned an object (Promise)',
    ],
    [
      'makes an exception without a status',
      () => new HttpException('Locked', undefined as unknown as number),
      'The exception of "exceptionFactory" has the status undefined',
    ],
    [
      'makes an exception of a status that is none',
      () => new HttpException('Locked', 42),
      'The exception of "exceptionFactory" has the status 42',
    ],
  ])('the default response is sent when exceptionFactory %s, and the log says so', async (_what, factory, told) => {
    await start(factory as LockExceptionFactory);
    await hold();
    const lines = hear();
    const { status, headers, body } = await post('42/handler');
    expect([status, headers['retry-after'], body]).toMatchObject([409, '1', { code: 'LOCK_TIMEOUT' }]);
    const remedy =
      'but must return an HttpException with a status of 200 to 599, or undefined. ' +
      'The client gets the default response.';
    expect(lines).toEqual([
      `error POST /accounts/:id/handler (AccountsController.handler): ${told}, ${remedy}`,
      expect.stringMatching(/^warn .*"account:42"/),
    ]);
  });

  it("each module's own exceptionFactory is called for its locks", async () => {
    @Controller('accounts')
    class Two {
      constructor(
        private readonly locks: LockService,
        @InjectLocks('billing') private readonly billing: LockService,
      ) {}

      @Post('default')
      first() {
        return this.locks.withLock('a', () => 1);
      }

      @Post('billing')
      second() {
        return this.billing.withLock('a', () => 1);
      }

      @Post('decorated')
      @WithLock('a', { module: 'billing' })
      async third() {}

      @Post('plain')
      @WithLock('a', { module: 'plain' })
      async fourth() {}

      @Post('async')
      @WithLock('a', { module: 'async' })
      async fifth() {}
    }
    const imports = [
      LockTestingModule.forRoot({ wait: 0, exceptionFactory: () => new HttpException('Locked', 423) }),
      LockTestingModule.forRoot({ name: 'billing', wait: 0, exceptionFactory: () => new HttpException('Later', 425) }),
      LockTestingModule.forRoot({ name: 'plain', wait: 0 }),
    ];
    const store = new MemoryLockStore();
    app = await startApp(adapter, {
      imports: [
        ...imports,
        RedisLockModule.forRootAsync({
          name: 'async',
          useFactory: () => ({ store, wait: 0, exceptionFactory: locked }),
        }),
      ],
      controllers: [Two],
    });
    const services = ['default', 'billing', 'plain', 'async'].map((name) =>
      app.get<LockService>(getLockServiceToken(name)),
    );
    const held = await Promise.all(services.map((service) => service.lock('a')));
    const statuses: number[] = [];
    for (const path of ['default', 'billing', 'decorated', 'plain', 'async']) statuses.push((await post(path)).status);
    await Promise.all(held.map((lock) => lock.unlock()));
    expect(statuses).toEqual([423, 425, 425, 409, 423]);
  });

  it('exceptionFactory is called for each of several calls that failed with one error', async () => {
    const store = new MemoryLockStore();
    const error = new LockUnavailableError('The disk is full.');
    store.acquire = () => Promise.reject(error);
    const exceptionFactory: LockExceptionFactory = (_error, context) =>
      new HttpException({ url: context.switchToHttp().getRequest<{ url: string }>().url }, 507);
    app = await startApp(adapter, {
      imports: [RedisLockModule.forRoot({ store, exceptionFactory })],
      controllers: [AccountsController],
      providers: [Accounts],
    });
    const answers = await Promise.all([1, 2, 3].map((id) => post(`${id}/service`)));
    const got = answers.map(({ status, headers, body }) => [
      status,
      headers['retry-after'],
      (body as { url: string }).url,
    ]);
    expect(got).toEqual([1, 2, 3].map((id) => [507, '1', `/accounts/${id}/service`]));
    expect(error.getStatus()).toBe(503);
  });
});
