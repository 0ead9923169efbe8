import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  Body,
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  HttpCode,
  type INestApplication,
  Injectable,
  type MessageEvent,
  type NestInterceptor,
  Param,
  ParseIntPipe,
  type PipeTransform,
  Post,
  Res,
  Scope,
  Sse,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common';
import { CurrentLock, type Lock, LockService, type LockTimeoutError, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { concatMap, defer, EMPTY, from, merge, type Observable, of, retry, Subject } from 'rxjs';
import request from 'supertest';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

jest.setTimeout(30_000);

/** What the server says: `asks`, `inside`, `handled`. */
const events = new EventEmitter();
let locks: LockService;
let goOn: Deferred;
let file: PassThrough;
let feed: Subject<MessageEvent>;
const ran: string[] = [];

/** Makes the answer of the handler wait. */
class SlowAnswer implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next
      .handle()
      .pipe(concatMap((value: unknown) => from((events.emit('handled'), goOn.promise.then(() => value)))));
  }
}

/** Tries the handler again when it fails. */
class TwiceTried implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(retry(1));
  }
}

/** The number of the try. */
const transactions = new AsyncLocalStorage<number>();

class Transactional implements NestInterceptor {
  #last = 0;

  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return transactions.run(++this.#last, () => next.handle());
  }
}

/** Tries again as soon as the first try is inside, which goes on. */
class Impatient implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const inside = once(events, 'inside').then(() => Promise.reject(new Error('too slow')));
    let tries = 0;
    return merge(
      next.handle(),
      defer(() => (++tries === 1 ? inside : EMPTY)),
    ).pipe(retry(1));
  }
}

class LockSeen implements PipeTransform {
  async transform(id: string) {
    return { id, wasLocked: await locks.isLocked(`order:${id}`) };
  }
}

const keyOf = (context: ExecutionContext) => {
  events.emit('asks');
  return `order:${context.switchToHttp().getRequest<{ params: { id: string } }>().params.id}`;
};

@Controller('orders')
class Orders {
  @WithLock(keyOf, { scope: 'request', wait: '1m' })
  @Post(':id/above')
  async above(@Param('id') id: string) {
    return this.#work(id);
  }

  @Post(':id/below')
  @WithLock(keyOf, { scope: 'request', wait: '1m' })
  async below(@Param('id') id: string) {
    return this.#work(id);
  }

  async #work(id: string) {
    events.emit('inside');
    await goOn.promise;
    ran.push(id);
    return { id };
  }

  @Post(':id/slow-answer')
  @UseInterceptors(SlowAnswer)
  @WithLock('order:<params.id>', { scope: 'request' })
  slowAnswer(@Param('id') id: string, @CurrentLock() lock?: Lock) {
    return { id, key: lock?.key, current: locks.current(`order:${id}`)?.isHeld };
  }

  @Post(':id/piped')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  piped(@Param('id', LockSeen) seen: object) {
    return seen;
  }

  @Post(':id/picky')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  picky(@Param('id', ParseIntPipe) id: number) {
    ran.push(String(id));
    return { id };
  }

  @Post(':id/failing')
  @WithLock('order:<params.id>', { scope: 'request' })
  failing() {
    throw new Error('no');
  }

  @Get(':id/file')
  @WithLock('order:<params.id>', { scope: 'request' })
  file() {
    return new StreamableFile(file);
  }

  @Get(':id/raw')
  @WithLock('order:<params.id>', { scope: 'request' })
  raw(@Res() response: { raw?: ServerResponse } & ServerResponse) {
    file.pipe(response.raw ?? response);
  }

  @Sse(':id/feed')
  @WithLock('order:<params.id>', { scope: 'request' })
  feed() {
    return feed.asObservable();
  }

  @Post(':id/lost')
  @WithLock('order:<params.id>', { scope: 'request' })
  async lost(@Param('id') id: string) {
    await locks.forceUnlock(`order:${id}`);
    return { id };
  }

  @Post(':id/retried')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  @UseInterceptors(TwiceTried, Transactional) // what is below is around what is above
  async retried(@Param('id') id: string) {
    ran.push(id);
    await locks.withLock(`order:${id}`, () => undefined, { wait: 0 });
    if (ran.length === 1) throw new Error('could not serialize access');
    return { id, locked: await locks.isLocked(`order:${id}`), transaction: transactions.getStore() };
  }

  @Post(':id/impatient')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  @UseInterceptors(Impatient)
  async impatient(@Param('id') id: string) {
    return this.#work(id);
  }

  @Post(':id/of/:customer')
  @WithLock('order:<params.id>', { scope: 'request' })
  @WithLock('customer:<params.customer>', { scope: 'request' })
  async both(@Param('id') id: string, @Param('customer') customer: string) {
    return {
      both: (await locks.isLocked(`order:${id}`)) && (await locks.isLocked(`customer:${customer}`)),
      inner: locks.current(`order:${id}`)?.isHeld,
    };
  }

  @Post(':id/skipped')
  @HttpCode(200)
  @WithLock('order:<params.id>', {
    scope: 'request',
    wait: 0,
    onTimeout: ({ error, args }) => ({ code: error.code, asked: (args[0] as ExecutionContext).getType() }),
  })
  skipped(@Param('id') id: string) {
    return { id };
  }

  @Post(':id/skipped-observable')
  @HttpCode(200)
  @WithLock('order:<params.id>', { scope: 'request', wait: 0, onTimeout: ({ error }) => of({ code: error.code }) })
  skippedObservable(@Param('id') id: string) {
    return of({ id });
  }

  @Post('parts/:id')
  @WithLock(['a:<params.id>', 'b:<query.q>', 'c:<body.items.0.sku>', 'd:<headers.X-Tenant-Id>'], { scope: 'request' })
  parts(@Body() _body: unknown) {
    return locks.current()?.keys;
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedOrders {
  @Post(':id')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  run(@Param('id', LockSeen) seen: object) {
    return seen;
  }
}

@Injectable()
class Named {
  @WithLock('order:<id>')
  async nested(id: string) {
    return id;
  }
}

describe.each(PLATFORMS)("on %s, a lock with scope: 'request'", (_platform, adapter) => {
  let app: INestApplication;

  beforeEach(async () => {
    goOn = deferred();
    file = new PassThrough();
    feed = new Subject();
    ran.length = 0;
    await start();
  });

  afterEach(async () => {
    events.removeAllListeners();
    file.end();
    feed.complete();
    await app.close();
  });

  async function start(options = {}) {
    app = await startApp(adapter, {
      imports: [LockTestingModule.forRoot(options)],
      controllers: [Orders, ScopedOrders],
      providers: [Named],
    });
    locks = app.get(LockService);
  }

  const isLocked = (id = '7') => locks.isLocked(`order:${id}`);
  const isFree = async () => !(await isLocked());
  const somebodyWaits = async () =>
    (await locks.lock('order:7', { maxWaiters: 1, wait: 1 }).catch(({ reason }: LockTimeoutError) => reason)) ===
    'too-many-waiters';
  const post = (path: string, body?: object) => request(app.getHttpServer()).post(`/orders/${path}`).send(body);

  /** Sends a request whose connection the test can cut. */
  function send(method: string, path: string): ClientRequest {
    const { port } = (app.getHttpServer() as { address(): { port: number } }).address();
    const sent = httpRequest({ port, path: `/orders/${path}`, method, agent: false }).on('error', () => undefined);
    sent.end();
    return sent;
  }

  async function answerOf(sent: ClientRequest): Promise<IncomingMessage> {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return response.on('error', () => undefined);
  }

  it.each(['above', 'below'])('one request at a time gets its lock %s the decorator of the route', async (place) => {
    const held = await locks.lock('order:7');
    const answers: Promise<request.Response>[] = [];
    for (let number = 0; number < 2; number++) {
      const asks = once(events, 'asks');
      answers.push(post(`7/${place}`).then((answer) => answer));
      await asks;
    }
    await turn();
    const inside = once(events, 'inside');
    await held.unlock();
    await inside;
    let second = false;
    events.once('inside', () => (second = true));
    await turn();
    expect([ran, second, await isLocked()]).toEqual([[], false, true]);
    goOn.resolve();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([201, 201]);
    expect(second).toBe(true);
    await until(isFree);
  });

  it('a request keeps its lock until the response has been sent, longer than the handler runs', async () => {
    const handled = once(events, 'handled');
    const answer = post('7/slow-answer').then(({ body }) => body as object);
    await handled;
    expect(await isLocked()).toBe(true);
    goOn.resolve();
    expect(await answer).toEqual({ id: '7', key: 'order:7', current: true });
    await until(isFree);
  });

  it('a request takes its lock before the pipes run', async () => {
    expect((await post('7/piped')).body).toEqual({ id: '7', wasLocked: true });
    const scoped = await request(app.getHttpServer()).post('/scoped/8');
    expect(scoped.body).toEqual({ id: '8', wasLocked: true });
    await until(isFree);
  });

  it('a request releases its lock when a pipe has refused it, or the handler has failed', async () => {
    await post('seven/picky').expect(400);
    await until(async () => !(await isLocked('seven')));
    await post('7/failing').expect(500);
    await until(isFree);
    expect(ran).toEqual([]);
  });

  it("a request that can't get its lock is answered with 409 and Retry-After, and does not run", async () => {
    await using held = await locks.lock('order:7');
    const { status, headers, body } = await post('7/picky');
    expect([status, headers['retry-after'], (body as { code: string }).code]).toEqual([409, '1', 'LOCK_TIMEOUT']);
    expect(ran).toEqual([]);
    held.assertHeld();
  });

  it('a request still holds its lock when an interceptor tries the handler again', async () => {
    const { status, body } = await post('7/retried');
    expect([status, body, ran]).toEqual([201, { id: '7', locked: true, transaction: 2 }, ['7', '7']]);
    await until(isFree);
  });

  it('a request lets no second try of its handler in while the first still works', async () => {
    const { status } = await post('7/impatient');
    expect([status, ran]).toEqual([409, []]);
    goOn.resolve();
    await until(isFree);
    expect(ran).toEqual(['7']);
  });

  it('a request can have two locks', async () => {
    expect((await post('7/of/8')).body).toEqual({ both: true, inner: true });
    await until(async () => (await isFree()) && !(await locks.isLocked('customer:8')));
  });

  it('a request can be skipped, with an answer of its own', async () => {
    await using held = await locks.lock('order:7');
    await post('7/skipped').expect(200, { code: 'LOCK_TIMEOUT', asked: 'http' });
    await post('8/skipped').expect(200, { id: '8' });
    await post('7/skipped-observable').expect(200, { code: 'LOCK_TIMEOUT' });
    await post('8/skipped-observable').expect(200, { id: '8' });
    held.assertHeld();
  });

  it('a request that loses its lock is answered with 503', async () => {
    const { status, headers, body } = await post('7/lost');
    expect([status, headers['retry-after'], (body as { code: string }).code]).toEqual([503, undefined, 'LOCK_LOST']);
  });

  it.each(['file', 'raw'])('a request keeps its lock while its response is sent (%s)', async (kind) => {
    const sent = send('GET', `7/${kind}`);
    file.write('half');
    const answer = await answerOf(sent);
    await once(answer, 'data');
    expect(await isLocked()).toBe(true);
    file.end('whole');
    await once(answer.resume(), 'end');
    await until(isFree);
  });

  it('a request for a file releases its lock when its client has gone', async () => {
    const sent = send('GET', '7/file');
    file.write('half');
    await once(await answerOf(sent), 'data');
    expect(await isLocked()).toBe(true);
    sent.destroy();
    await until(isFree);
  });

  it.each<[string, (sent: ClientRequest) => void]>([
    ['has completed', () => feed.complete()],
    ['has failed', () => feed.error(new Error('no'))],
    ['has lost its client', (sent) => sent.destroy()],
  ])('a request keeps its lock until the stream of events %s', async (_how, end) => {
    const sent = send('GET', '7/feed');
    await until(() => feed.observed);
    feed.next({ data: 'one' });
    await once(await answerOf(sent), 'data');
    expect(await isLocked()).toBe(true);
    end(sent);
    await until(isFree);
    expect(feed.observed).toBe(false);
    sent.destroy();
  });

  it('a request keeps its lock until the handler has ended, if its client goes before', async () => {
    const inside = once(events, 'inside');
    const connection = once(app.getHttpServer() as EventEmitter, 'connection') as Promise<[EventEmitter]>;
    const sent = send('POST', '7/above');
    await inside;
    const gone = once((await connection)[0], 'close');
    sent.destroy();
    await gone;
    await turn();
    expect(await isLocked()).toBe(true);
    goOn.resolve();
    await until(isFree);
    expect(ran).toEqual(['7']);
  });

  it.each([{}, { http: false }])('a request stops waiting when its client has gone, with %j', async (options) => {
    await app.close();
    await start(options);
    const held = await locks.lock('order:7');
    const sent = send('POST', '7/below');
    await until(somebodyWaits);
    sent.destroy();
    await until(async () => !(await somebodyWaits()));
    await held.unlock();
    await (await locks.lock('order:7', { wait: '1s' })).unlock();
    expect(ran).toEqual([]);
  });

  it('a request can take the key of its lock from its parts', async () => {
    const { body } = await request(app.getHttpServer())
      .post('/orders/parts/1:x?q=2')
      .set('X-Tenant-Id', 'three')
      .send({ items: [{ sku: 4 }] });
    expect(body).toEqual(['a:1%3Ax', 'b:2', 'c:4', 'd:three']);
  });

  it('a request without a part that the key needs is answered with 400', async () => {
    const { status, body } = await request(app.getHttpServer()).post('/orders/parts/1?q=2').send({ items: [] });
    expect([status, (body as { code: string }).code]).toEqual([400, 'LOCK_KEY_INVALID']);
  });

  it('a request ends with an error where LockService is a mock that knows nothing of requests', async () => {
    await app.close();
    const withLock = async (_key: string, work: (lock: unknown) => unknown) => work({});
    app = await startApp(adapter, {
      controllers: [Orders],
      providers: [{ provide: LockService, useValue: { withLock } }],
    });
    await request(app.getHttpServer()).post('/orders/7/below').expect(500);
    jest.spyOn(app.get(LockService), 'withLock').mockResolvedValue('mock');
    expect((await request(app.getHttpServer()).post('/orders/7/below').expect(201)).text).toBe('mock');
    expect(ran).toEqual([]);
  });

  it("a call that is no request is refused with scope: 'request'", async () => {
    await expect(app.get(Orders).above('7')).rejects.toMatchObject({ code: 'LOCK_OPTIONS_INVALID' });
    expect(ran).toEqual([]);
  });
});
