import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Controller,
  ForbiddenException,
  Get,
  type INestApplicationContext,
  Logger,
  type MessageEvent,
  Sse,
} from '@nestjs/common';
import { GraphQLModule, Query, Resolver, Subscription } from '@nestjs/graphql';
import { ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { concatMap, Observable, of, Subject } from 'rxjs';
import { WebSocket } from 'ws';
import { freePort } from '../support/free-port.mjs';
import { type Deferred, deferred, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

jest.setTimeout(30_000);

/** What the streams of the handlers send. */
let feed: Subject<MessageEvent>;
let locks: LockService;
let audit: { readonly started: Deferred; readonly done: Deferred };
const closing: (() => unknown)[] = [];

beforeEach(() => {
  feed = new Subject();
  audit = { started: deferred(), done: deferred() };
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const imports = () => [LockTestingModule.forRoot({ wait: 0 })];
const isFree = async () => !(await locks.isLocked('feed'));

function opened(app: INestApplicationContext): void {
  locks = app.get(LockService);
  closing.push(() => app.close());
}

/** Sends something, and sees that it comes, and that the lock is held meanwhile. */
async function isHeldWhile(read: () => Promise<unknown>): Promise<void> {
  await until(() => feed.observed);
  expect(await isFree()).toBe(false);
  const got = read();
  feed.next({ data: 'one' });
  await got;
  expect(await isFree()).toBe(false);
}

@Controller('feeds')
class Feeds {
  @Sse('declared')
  @WithLock('feed')
  declared(): Observable<MessageEvent> {
    return feed;
  }

  @WithLock('feed')
  @Sse('undeclared')
  undeclared() {
    return feed.asObservable();
  }

  @Sse('promised')
  @WithLock('feed')
  async promised() {
    return feed.asObservable();
  }

  /** Works on with the stream before it returns it. */
  @Sse('audited')
  async audited() {
    const stream = await this.promised();
    audit.started.resolve();
    await audit.done.promise;
    return stream;
  }

  @Get('refused')
  async refused() {
    await this.promised();
    throw new ForbiddenException();
  }

  @Get('skipped')
  @WithLock('feed', { onTimeout: 'skip' })
  skipped(): Observable<string> {
    return of('never');
  }

  @Sse('waiting')
  @WithLock('feed', { wait: '200ms' })
  waiting(): Observable<MessageEvent> {
    return feed;
  }

  @Sse('catching')
  catching(): Observable<MessageEvent> {
    return feed.pipe(
      concatMap(async () => {
        const message = await locks.lock('feed', { wait: 0 }).then(
          () => '',
          (error: Error) => error.message,
        );
        return { data: { message } };
      }),
    );
  }

  @Sse('waiting-request')
  @WithLock('feed', { wait: '200ms', scope: 'request' })
  waitingRequest(): Observable<MessageEvent> {
    return feed;
  }

  @MessagePattern('declared')
  @WithLock('feed')
  message(): Observable<MessageEvent> {
    return feed;
  }

  @MessagePattern('undeclared')
  @WithLock('feed')
  undeclaredMessage() {
    return feed.asObservable();
  }
}

describe.each(PLATFORMS)('server-sent events on %s', (_platform, adapter) => {
  async function connect(path: string): Promise<{ response: IncomingMessage; leave: () => void }> {
    const app = await startApp(adapter, { imports: imports(), controllers: [Feeds] });
    opened(app);
    const request = get(`${await app.getUrl()}/feeds/${path}`, { agent: false }).on('error', () => undefined);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.on('error', () => undefined);
    return { response, leave: () => void request.destroy() };
  }

  it.each(['declared', 'undeclared', 'promised'])(
    'server-sent events of a method whose Observable is %s hold the lock until they have ended',
    async (path) => {
      const { response } = await connect(path);
      await isHeldWhile(() => once(response, 'data'));
      feed.complete();
      await until(isFree);
    },
  );

  it.each(['declared', 'undeclared', 'promised'])(
    'server-sent events of a method whose Observable is %s hold the lock until the client has gone',
    async (path) => {
      const { response, leave } = await connect(path);
      await isHeldWhile(() => once(response, 'data'));
      leave();
      await until(isFree);
      expect(feed.observed).toBe(false);
    },
  );

  /** What a client reads of a stream that ends, and what the log says. */
  async function read(response: IncomingMessage): Promise<string> {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
    await once(response, 'end');
    return text;
  }

  const FOR_CLIENTS = /^event: error\nid: \d+\ndata: Another request is working on this right now/m;

  it.each(['waiting', 'waiting-request'])(
    "server-sent events that can't begin (%s) tell the client neither the key nor the holder; the log does",
    async (path) => {
      const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
      closing.push(() => warn.mockRestore());
      const app = await startApp(adapter, { imports: imports(), controllers: [Feeds] });
      opened(app);
      const held = await locks.lock('feed');
      closing.push(() => held.unlock());
      const request = get(`${await app.getUrl()}/feeds/${path}`, { agent: false });
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      const text = await read(response);
      expect([response.statusCode, text]).toEqual([200, expect.stringMatching(FOR_CLIENTS)]);
      expect(text).not.toMatch(new RegExp(`feed|${process.pid}`));
      expect(warn.mock.calls).toEqual([[expect.stringContaining('"feed"')]]);
    },
  );

  it.each(['declared', 'promised'])('server-sent events that lose their lock (%s) hide the key', async (path) => {
    const { response } = await connect(path);
    await isHeldWhile(() => once(response, 'data'));
    const rest = read(response);
    await locks.forceUnlock('feed');
    const text = await rest;
    expect(text).toMatch(/^event: error$/m);
    expect(text).not.toContain('feed');
  });

  it('server-sent events leave an error that the app catches as it is', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    closing.push(() => warn.mockRestore());
    const { response } = await connect('catching');
    const held = await locks.lock('feed');
    closing.push(() => held.unlock());
    await until(() => feed.observed);
    feed.next({ data: '' });
    feed.complete();
    expect(await read(response)).toContain('Another request is working on this right now');
    expect(warn).not.toHaveBeenCalled();
  });

  it('a declared Observable ends without a value where the lock is skipped', async () => {
    const app = await startApp(adapter, { imports: imports(), controllers: [Feeds] });
    opened(app);
    const held = await locks.lock('feed');
    closing.push(() => held.unlock());
    const [response] = (await once(get(`${await app.getUrl()}/feeds/skipped`, { agent: false }), 'response')) as [
      IncomingMessage,
    ];
    expect([response.statusCode, await read(response)]).toEqual([200, '']);
  });

  it('a stream is let go soon when its client leaves before the handler has returned it', async () => {
    const app = await startApp(adapter, { imports: imports(), controllers: [Feeds] });
    opened(app);
    closing.push(() => audit.done.resolve());
    const request = get(`${await app.getUrl()}/feeds/audited`, { agent: false }).on('error', () => undefined);
    await audit.started.promise;
    expect(await isFree()).toBe(false);
    request.destroy();
    await until(isFree);
  });

  it('a stream is let go soon when the handler that has got it fails', async () => {
    const app = await startApp(adapter, { imports: imports(), controllers: [Feeds] });
    opened(app);
    const [response] = (await once(get(`${await app.getUrl()}/feeds/refused`, { agent: false }), 'response')) as [
      IncomingMessage,
    ];
    expect([response.statusCode, await read(response)]).toEqual([403, expect.stringContaining('Forbidden')]);
    await until(isFree);
  });
});

it.each(['declared', 'undeclared'])(
  'an Observable of @MessagePattern that is %s holds the lock until it has ended',
  async (pattern) => {
    const options = { host: '127.0.0.1', port: await freePort() };
    const module = await Test.createTestingModule({ imports: imports(), controllers: [Feeds] }).compile();
    const app = module.createNestMicroservice({ transport: Transport.TCP, options, logger: false });
    await app.listen();
    opened(app);
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    closing.push(() => client.close());

    const heard = new Subject<unknown>();
    const subscription = client.send(pattern, {}).subscribe(heard);
    await isHeldWhile(() => new Promise((resolve) => heard.subscribe(resolve)));
    feed.complete();
    await until(isFree);
    subscription.unsubscribe();
  },
);

describe('a stream over a websocket', () => {
  @WebSocketGateway()
  class Gateway {
    @SubscribeMessage('feed')
    @WithLock('feed')
    declared(): Observable<MessageEvent> {
      return feed;
    }
  }

  it('a stream over a websocket holds the lock until it has ended', async () => {
    const app = await startApp(
      () => new ExpressAdapter(),
      { imports: imports(), providers: [Gateway] },
      (app) => app.useWebSocketAdapter(new WsAdapter(app)),
    );
    opened(app);
    const socket = new WebSocket((await app.getUrl()).replace('http', 'ws'));
    closing.push(() => socket.terminate());
    await once(socket, 'open');
    socket.send(JSON.stringify({ event: 'feed' }));
    await isHeldWhile(() => once(socket, 'message'));
    feed.complete();
    await until(isFree);
  });
});

describe('a GraphQL subscription', () => {
  let left: boolean;

  @Resolver()
  class FeedResolver {
    @Query('nothing')
    nothing() {
      return null;
    }

    @Subscription('feed')
    @WithLock('feed')
    feed(): AsyncIterableIterator<unknown> {
      const values = [{ feed: 'one' }];
      return {
        next: () =>
          values.length > 0 ? Promise.resolve({ done: false, value: values.pop() }) : new Promise(() => undefined),
        return: async () => {
          left = true;
          return { done: true, value: undefined };
        },
        [Symbol.asyncIterator]() {
          return this;
        },
      };
    }
  }

  it('a GraphQL subscription holds the lock until the client has gone', async () => {
    left = false;
    const typeDefs = 'type Query { nothing: String } type Subscription { feed: String }';
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      typeDefs,
      graphiql: false,
      subscriptions: { 'graphql-ws': true },
    });
    const app = await startApp(() => new ExpressAdapter(), {
      imports: [...imports(), graphql],
      providers: [FeedResolver],
    });
    opened(app);
    const socket = new WebSocket(`${(await app.getUrl()).replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    closing.push(() => socket.terminate());
    await once(socket, 'open');
    const next = async () =>
      JSON.parse(((await once(socket, 'message')) as [Buffer])[0].toString()) as { type: string };
    const acknowledged = next();
    socket.send(JSON.stringify({ type: 'connection_init' }));
    await acknowledged;
    const first = next();
    socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: 'subscription { feed }' } }));
    expect(await first).toMatchObject({ type: 'next', payload: { data: { feed: 'one' } } });
    expect([left, await isFree()]).toEqual([false, false]);
    socket.terminate();
    await until(() => left);
    await until(isFree);
  });
});
