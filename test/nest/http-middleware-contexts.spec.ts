import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  Body,
  Controller,
  Get,
  type INestApplication,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestMiddleware,
  Param,
  Post,
} from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { CurrentLock, type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { AsyncResource } from 'node:async_hooks';
import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Agent, createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import request from 'supertest';
import { type Deferred, deferred, until } from '../support/deferred.js';
import { type NewAdapter, PLATFORMS, startApp } from './http-app.js';

jest.setTimeout(30_000);

/** The context in which the pool of a database has made its connection, and calls all of its callers back. */
let connected: AsyncResource | undefined;
let goOn: Deferred;
/** Whether the context of each request was that of a finished one when it came. */
const sawFinished: boolean[] = [];
let locks: LockService;

/** Reads the session from a database, whose client tells of results by callbacks. */
@Injectable()
class Session implements NestMiddleware {
  use(_request: unknown, _response: unknown, next: () => void): void {
    sawFinished.push(locks.requests.isOver());
    const call = connected;
    if (call) setImmediate(() => call.runInAsyncScope(next));
    else next();
  }
}

/** Lets each customer do one thing at a time. */
@Injectable()
class OneByOne implements NestMiddleware {
  use({ headers }: IncomingMessage, response: ServerResponse, next: () => void): void {
    if (!headers['x-customer']) return next();
    void locks.withLock(`order:${String(headers['x-customer'])}`, async () => {
      const closed = once(response, 'close');
      next();
      await closed;
    });
  }
}

const shown = (lock: Lock | undefined, size: number) => ({ lock: lock!.key, isHeld: lock!.isHeld, size });

@Controller()
class Orders {
  @Post('request/:id')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  inRequest(@Body() { text }: { text: string }, @CurrentLock() lock?: Lock) {
    return Promise.resolve(shown(lock, text.length));
  }

  @Get('plain')
  plain() {
    return 'done';
  }

  @Post('call/:id')
  @WithLock('order:<0>', { wait: 0 })
  inCall(@Param('id') _id: string, @Body() { text }: { text: string }, @CurrentLock() lock?: Lock) {
    return Promise.resolve(shown(lock, text.length));
  }
}

@Module({ imports: [LockTestingModule.forRoot()], controllers: [Orders] })
class AppModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(Session, OneByOne).forRoutes(Orders);
  }
}

const HTTP2 = 'Fastify, HTTP/2';
const HOSTS: [string, NewAdapter][] = [...PLATFORMS, [HTTP2, () => new FastifyAdapter({ http2: true })]];

describe.each(HOSTS)('on %s, a handler behind a middleware that goes on in another async context', (host, adapter) => {
  let app: INestApplication;

  beforeEach(async () => {
    connected = undefined;
    goOn = deferred();
    app = await startApp(adapter, { imports: [AppModule] });
    locks = app.get(LockService);
  });

  afterEach(async () => {
    goOn.resolve();
    await app.close();
  });

  const post = async (path: string, size = 10, headers: Record<string, string> = {}): Promise<unknown> => {
    const client = request(app.getHttpServer(), { http2: host === HTTP2 });
    const { status, body } = await client
      .post(`/${path}`)
      .set(headers)
      .send({ text: 'x'.repeat(size) });
    return { status, ...(body as object) };
  };

  it.each(['request', 'call'])('does not enter the lock of a job that has connected (scope: %s)', async (scope) => {
    const job = locks.withLock('order:1', () => {
      connected = new AsyncResource('client');
      return goOn.promise;
    });
    await until(() => connected !== undefined);
    expect(await post(`${scope}/1`)).toMatchObject({ status: 409, code: 'LOCK_TIMEOUT' });
    expect(await post(`${scope}/2`)).toEqual({ status: 201, lock: 'order:2', isHeld: true, size: 10 });
    goOn.resolve();
    await job;
    expect(await post(`${scope}/1`)).toEqual({ status: 201, lock: 'order:1', isHeld: true, size: 10 });
  });

  it('does not begin in the context of the request before it on its connection', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    sawFinished.length = 0;
    for (let turn = 0; turn < 3; turn++) {
      const sent = request(app.getHttpServer(), { http2: host === HTTP2 }).get('/plain');
      if (host !== HTTP2) void sent.agent(agent).set('connection', 'keep-alive');
      await sent.expect(200);
    }
    agent.destroy();
    expect(sawFinished).toEqual([false, false, false]);
  });

  it.each(['request', 'call'])('is nested in a lock that a middleware holds around it (scope: %s)', async (scope) => {
    const sizes = [10, 50_000, 10, 50_000];
    const headers = { 'x-customer': '7' };
    const all = await Promise.all(sizes.map((size) => post(`${scope}/7`, size, headers)));
    expect(all).toEqual(sizes.map((size) => ({ status: 201, lock: 'order:7', isHeld: true, size })));
  });
});

it.each(HOSTS)('on %s, a request is in no lock in which its server has begun to listen', async (host, adapter) => {
  const app = (await Test.createTestingModule({ imports: [AppModule] }).compile()).createNestApplication(adapter());
  await app.init();
  if (host !== 'Express') await (app.getHttpAdapter() as FastifyAdapter).getInstance().ready();
  connected = undefined;
  locks = app.get(LockService);
  const statuses = await locks.withLock('order:1', async () => {
    // supertest lets the server listen.
    const client = request(app.getHttpServer(), { http2: host === HTTP2 });
    const first = await client.post('/request/1').send({ text: 'x' });
    const second = await client.post('/call/1').send({ text: 'x' });
    return [first.status, second.status];
  });
  expect(statuses).toEqual([409, 409]);
  await app.close();
});

it('a request to a server of its own that an app has opened inside a lock is in that lock', async () => {
  const app = await startApp(PLATFORMS[0]![1], { imports: [AppModule] });
  locks = app.get(LockService);
  await locks.withLock('order:1', async () => {
    const server = createServer((_request, response) => {
      const nested = locks.withLock('order:1', (lock) => lock.key, { wait: 0 });
      void nested.then(
        (key) => response.end(key),
        ({ message }: Error) => response.end(message),
      );
    });
    // supertest lets the server listen.
    const { text } = await request(server).get('/');
    expect(text).toBe('order:1');
  });
  await app.close();
});

it.each(PLATFORMS)('on %s, a request that is emitted by hand takes its emitter out of no lock', async (_, adapter) => {
  const app = await startApp(adapter, { imports: [AppModule] });
  connected = undefined;
  locks = app.get(LockService);
  const answered = deferred();
  await locks.withLock('order:1', async () => {
    const message = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/plain' });
    message.push(null);
    const response = new ServerResponse(message);
    response.end = () => (answered.resolve(), response);
    (app.getHttpServer() as Server).emit('request', message, response);
    expect(locks.current('order:1')?.isHeld).toBe(true);
    await answered.promise;
    expect(await locks.withLock('order:1', ({ key }) => key, { wait: 0 })).toBe('order:1');
  });
  await app.close();
});

it('an app that has closed no longer listens to the requests of its process, which would keep all its modules', async () => {
  /** How many listeners look at a request that begins. */
  const listeners = (): number => {
    let looks = 0;
    channel('http.server.request.start').publish({
      get response() {
        looks++;
        return {};
      },
    });
    return looks;
  };
  const before = listeners();
  const apps = await Promise.all(PLATFORMS.map(([, adapter]) => startApp(adapter, { imports: [AppModule] })));
  expect(listeners()).toBe(before + 1);
  await apps[0]!.close();
  await apps[0]!.close();
  expect(listeners()).toBe(before + 1);
  await apps[1]!.close();
  expect(listeners()).toBe(before);
});
