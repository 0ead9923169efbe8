import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type ArgumentsHost,
  type CallHandler,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  Logger,
  type MessageEvent,
  type NestInterceptor,
  Post,
  Res,
  Sse,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import { BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import {
  isLockError,
  LockError,
  LockInterceptor,
  LockService,
  LockUnavailableError,
  RedisLockModule,
} from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { EventEmitter, once } from 'node:events';
import { get as httpGet, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { Observable, retry } from 'rxjs';
import request from 'supertest';
import { PLATFORMS, startApp } from './http-app.js';

/** Reads the error before it asks for the status. */
@Catch(LockError)
class ProblemFilter implements ExceptionFilter {
  constructor(private readonly host: HttpAdapterHost) {}

  catch(error: LockError, host: ArgumentsHost) {
    const { message: title, retryable, retryAfter } = error;
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), { title, retryable, retryAfter }, error.getStatus());
  }
}

/** Does not ask for the status at all. */
@Catch()
class LockedFilter implements ExceptionFilter {
  constructor(private readonly host: HttpAdapterHost) {}

  catch(error: unknown, host: ArgumentsHost) {
    const retryable = isLockError(error) && error.retryable;
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), { retryable }, 423);
  }
}

@Injectable()
class Retrying implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    const again = (error: unknown) => {
      if (isLockError(error) && error.retryable) return Promise.resolve();
      throw error;
    };
    return next.handle().pipe(retry({ count: 2, delay: again }));
  }
}

/** A catch-all filter that knows nothing of locks. */
@Catch()
class AnyFilter extends BaseExceptionFilter {}

let paid = 0;
const stream = new EventEmitter();

@Controller()
class Payments {
  private load = Promise.resolve();

  constructor(private readonly locks: LockService) {}

  async pay(): Promise<void> {
    await this.locks.withLock('payment', () => paid++);
  }

  async payAndFail(): Promise<void> {
    await this.pay();
    await this.locks.withLock('busy', () => undefined);
  }

  @Post('problem')
  @UseFilters(ProblemFilter)
  problem() {
    return this.payAndFail();
  }

  @Post('locked')
  @UseFilters(LockedFilter)
  locked() {
    return this.payAndFail();
  }

  @Post('question')
  @UseFilters(ProblemFilter)
  async question() {
    await this.pay();
    await this.locks.isLocked('a');
  }

  @Get('question')
  @UseFilters(ProblemFilter)
  isLocked() {
    return this.locks.isLocked('a');
  }

  @Post('again')
  @UseInterceptors(Retrying)
  again() {
    return this.payAndFail();
  }

  @Post('refused')
  async refused() {
    const busy = ['busy', 'busy too'].map((key) => this.locks.withLock(key, () => undefined));
    const [first] = await Promise.allSettled(busy);
    throw (first as PromiseRejectedResult).reason;
  }

  @Post('later')
  @UseFilters(ProblemFilter)
  async later() {
    try {
      await this.locks.withLock('busy', () => undefined);
    } finally {
      await this.pay();
    }
  }

  @Post('shared')
  async shared() {
    this.load = once(stream, 'joined').then(() => this.locks.withLock('busy', () => undefined));
    stream.emit('asked');
    try {
      await this.load;
    } finally {
      await once(stream, 'answered');
      await this.pay();
    }
  }

  @Post('joining')
  joining() {
    stream.emit('joined');
    return this.load;
  }

  @Post('frozen')
  async frozen() {
    const busy = this.locks.withLock('busy', () => undefined);
    const error: unknown = await busy.catch((error: LockError) => Object.freeze(error));
    await this.pay();
    return isLockError(error) && error.code;
  }

  @Post('frozen-before')
  async frozenBefore() {
    const busy = this.locks.withLock('busy', () => undefined);
    const error: unknown = await busy.catch((error: LockError) => Object.freeze(error));
    await this.pay();
    throw error;
  }

  /** Looks at all errors, and throws the first one. */
  @Post('batch')
  async batch() {
    const calls = [
      this.locks.withLock('busy', () => undefined),
      this.locks.withLock('busy too', () => undefined, { wait: '1.1s' }),
    ];
    const reasons = (await Promise.allSettled(calls)).map(
      (call) => (call as PromiseRejectedResult).reason as LockError,
    );
    if (reasons.every((error) => error.getStatus() === 409)) throw reasons[0]!;
  }

  /** Looks at the error of a call that is not repeatable, and fails by another one. */
  @Post('fallback')
  async fallback() {
    await this.locks.forceUnlock('busy').catch((error: LockError) => error.getStatus());
    await this.locks.lock('free');
  }

  /** Has begun to answer before it works. */
  @Post('begun')
  async begun(@Res() response: { raw?: ServerResponse } & ServerResponse) {
    const raw = response.raw ?? response;
    raw.writeHead(200);
    await this.pay();
    await this.locks.withLock('busy', () => undefined).catch((error: LockError) => raw.end(String(error.retryable)));
  }

  @Post('all')
  @UseFilters(AnyFilter)
  all() {
    const keys = Array.from({ length: 40 }, (_, number) => `busy ${number}`);
    return Promise.all(keys.map((key) => this.locks.withLock(key, () => undefined)));
  }

  @Post('force')
  force() {
    return this.locks.forceUnlock('busy', { by: 'me', reason: 'stuck' });
  }

  @Post('asked')
  @UseFilters(ProblemFilter)
  async asked() {
    try {
      await this.locks.withLock('busy', () => undefined);
    } catch (error) {
      await this.locks.isLocked('a').catch(() => false);
      throw error;
    }
  }

  @Post('generator')
  @UseInterceptors(LockInterceptor)
  async *generator() {
    await this.pay();
    yield await this.locks.withLock('busy', () => 'never');
  }

  @Sse('events')
  events(): Observable<MessageEvent> {
    return new Observable((subscriber) => {
      subscriber.next({ data: 'begun' });
      void this.poll().then((seen) => {
        subscriber.next({ data: String(seen.retryable) });
        subscriber.error(seen);
      });
    });
  }

  async poll(): Promise<LockError> {
    await once(stream, 'begun');
    await this.pay();
    return this.locks.withLock('busy', () => undefined as never).catch((error: LockError) => error);
  }
}

let app: INestApplication;

afterEach(() => app.close());

describe.each(PLATFORMS)('A lock error after other locked work of its request, on %s', (_platform, adapter) => {
  let store: MemoryLockStore;

  async function start(http?: false) {
    paid = 0;
    store = new MemoryLockStore();
    app = await startApp(adapter, {
      imports: [RedisLockModule.forRoot({ store, wait: 0, ...(http === false && { http }) })],
      controllers: [Payments],
    });
    return app.get(LockService).lock('busy');
  }

  const post = (path: string) => request(app.getHttpServer()).post(path);

  it('is not retryable for a filter that reads it before it asks for the status', async () => {
    await using held = await start();
    const { status, headers, body } = await post('/problem');
    held.assertHeld();
    expect([status, headers['retry-after'], body]).toEqual([
      409,
      undefined,
      { title: expect.stringContaining('part of the work may be done'), retryable: false },
    ]);
  });

  it('is not retryable for a filter that sends a status of its own', async () => {
    await using held = await start();
    const { body } = await post('/locked').expect(423);
    held.assertHeld();
    expect(body).toEqual({ retryable: false });
  });

  it('is not retryable for a filter where the work comes after the error', async () => {
    await using held = await start();
    const { headers, body } = await post('/later').expect(409);
    held.assertHeld();
    expect([headers['retry-after'], body]).toMatchObject([undefined, { retryable: false }]);
  });

  it('is retryable where all work of the request was refused', async () => {
    await using held = await start();
    await using too = await app.get(LockService).lock('busy too');
    const { headers, body } = await post('/refused').expect(409);
    expect([headers['retry-after'], body]).toMatchObject(['1', { retryable: true }]);
    held.assertHeld();
    too.assertHeld();
  });

  it('is not retryable for a request that works though it shares the error with one that does not', async () => {
    await using held = await start();
    const asked = once(stream, 'asked');
    const working = post('/shared').expect(409).then();
    await asked;
    expect((await post('/joining').expect(409)).body).toMatchObject({ retryable: true });
    stream.emit('answered');
    const { headers, body } = await working;
    expect([headers['retry-after'], body]).toMatchObject([undefined, { retryable: false }]);
    held.assertHeld();
  });

  it('does not end the work that comes after it when the app has frozen it', async () => {
    await using held = await start();
    expect((await post('/frozen').expect(201)).text).toBe('LOCK_TIMEOUT');
    held.assertHeld();
    expect([paid, await app.get(LockService).isLocked('payment')]).toEqual([1, false]);
  });

  it('does not ask the client to try again when the app has frozen it before the work', async () => {
    await using held = await start();
    const { headers, body } = await post('/frozen-before').expect(409);
    expect([headers['retry-after'], body]).toMatchObject([undefined, { retryable: false }]);
    held.assertHeld();
  });

  it('is not retryable when a forced release gets no reply: the next holder would lose the lock', async () => {
    await using held = await start();
    store.forceRelease = () => Promise.reject(new LockUnavailableError('No reply.'));
    const { headers, body } = await post('/force').expect(503);
    expect([headers['retry-after'], body]).toMatchObject([undefined, { retryable: false }]);
    held.assertHeld();
  });

  it('of two, the one that is thrown makes Retry-After and the line', async () => {
    await using held = await start();
    await using too = await app.get(LockService).lock('busy too');
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const { headers, body } = await post('/batch').expect(409);
    const lines = warn.mock.calls.map(([line]) => String(line));
    warn.mockRestore();
    expect([headers['retry-after'], body]).toMatchObject(['1', { retryAfter: 1 }]);
    expect(lines).toEqual([expect.stringContaining('"busy"')]);
    held.assertHeld();
    too.assertHeld();
  });

  it('has Retry-After although the app has looked at one that is not retryable', async () => {
    await using held = await start();
    store.forceRelease = () => Promise.reject(new LockUnavailableError('No reply.'));
    store.acquire = () => Promise.reject(new LockUnavailableError('No reply.'));
    const { headers, body } = await post('/fallback').expect(503);
    expect([headers['retry-after'], body]).toMatchObject(['1', { retryable: true }]);
    held.assertHeld();
  });

  it('is not retryable in a response that has begun', async () => {
    await using held = await start();
    expect((await post('/begun').buffer(true).expect(200)).text).toBe('false');
    held.assertHeld();
  });

  it('has Retry-After under a filter of the app where it is the first of many', async () => {
    await using held = await start();
    const keys = Array.from({ length: 40 }, (_, number) => `busy ${number}`);
    const locks = await Promise.all(keys.map((key) => app.get(LockService).lock(key)));
    const { headers } = await post('/all').expect(409);
    expect(headers['retry-after']).toBe('1');
    await Promise.all(locks.map((lock) => lock.unlock()));
    held.assertHeld();
  });

  it('has Retry-After under a filter of the app though a question about a key has failed since', async () => {
    await using held = await start();
    store.isLocked = () => Promise.reject(new LockUnavailableError('The disk is full.'));
    const { headers } = await post('/asked').expect(409);
    held.assertHeld();
    expect(headers['retry-after']).toBe('1');
  });

  it('is not retryable for an interceptor that would call the handler again', async () => {
    await using held = await start();
    await post('/again').expect(409);
    held.assertHeld();
    expect(paid).toBe(1);
  });

  it('is not retryable when a question about a key gets no reply', async () => {
    await using held = await start();
    store.isLocked = () => Promise.reject(new LockUnavailableError('The disk is full.'));
    const { headers, body } = await post('/question').expect(503);
    expect([headers['retry-after'], body]).toMatchObject([undefined, { retryable: false }]);
    const alone = await request(app.getHttpServer()).get('/question').expect(503);
    expect([alone.headers['retry-after'], alone.body]).toMatchObject(['1', { retryable: true }]);
    held.assertHeld();
  });

  it('is not retryable when the work of an async generator begins as its handler has returned, with http: false', async () => {
    await using held = await start(false);
    const { headers, body } = await post('/generator').expect(409);
    held.assertHeld();
    expect([headers['retry-after'], body]).toMatchObject([undefined, { retryable: false }]);
  });

  it('is retryable in an event stream that has begun, and the event of its end does not tell the client so', async () => {
    await using held = await start();
    const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
    const [response] = (await once(httpGet({ port, host: '127.0.0.1', path: '/events' }), 'response')) as [
      IncomingMessage,
    ];
    let text = '';
    for await (const chunk of response) {
      text += String(chunk);
      if (text.includes('begun')) stream.emit('begun');
    }
    held.assertHeld();
    expect(text).toMatch(/data: true\n[^]*event: error\n[^]*part of the work may be done/);
  });
});
