import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Res, Sse, StreamableFile } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { type ClientHttp2Session, connect, constants, type ServerHttp2Stream } from 'node:http2';
import { PassThrough, Readable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { type Observable, ReplaySubject } from 'rxjs';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';
import { followStream } from '../../lib/http/reset-stream.js';
import { startApp } from './http-app.js';

const KEY = 'order:7';
let events: ReplaySubject<{ data: string }>;
let file: PassThrough;
let answer: Deferred;
/** Of a request whose handler sends the answer by itself. */
let received: Deferred<Reply['raw']>;

interface Reply {
  raw: ServerResponse & { stream: ServerHttp2Stream };
}

@Controller()
class Orders {
  @Sse('call/events')
  @WithLock(KEY)
  eventsInCall(): Observable<{ data: string }> {
    return events;
  }

  @Sse('request/events')
  @WithLock(KEY, { scope: 'request' })
  eventsInRequest() {
    return events;
  }

  @Get('request/json')
  @WithLock(KEY, { scope: 'request' })
  async json() {
    await answer.promise;
    return { id: 7 };
  }

  @Get('request/file')
  @WithLock(KEY, { scope: 'request' })
  file() {
    return new StreamableFile(file);
  }

  @Get('call/sent')
  @WithLock(KEY)
  sentInCall(@Res() reply: Reply) {
    return this.#send(reply);
  }

  @Get('request/sent')
  @WithLock(KEY, { scope: 'request' })
  sentInRequest(@Res() reply: Reply) {
    return this.#send(reply);
  }

  @Get('raw')
  @WithLock(KEY, { scope: 'request' })
  raw(@Res() { raw }: Reply) {
    raw.stream.respond();
    raw.stream.end('the answer');
    received.resolve(raw);
  }

  async #send({ raw }: Reply) {
    received.resolve(raw);
    await answer.promise;
    await pipeline(Readable.from(['the', 'answer']), raw).catch(() => undefined);
  }
}

let app: INestApplication;
let session: ClientHttp2Session;

beforeEach(async () => {
  events = new ReplaySubject();
  file = new PassThrough();
  answer = deferred();
  received = deferred();
  app = await startApp(() => new FastifyAdapter({ http2: true }), {
    imports: [LockTestingModule.forRoot()],
    controllers: [Orders],
  });
  const { port } = (app.getHttpServer() as Server).address() as { port: number };
  session = connect(`http://127.0.0.1:${port}`).on('error', () => undefined);
});

afterEach(async () => {
  session.destroy();
  await app.close();
});

describe.each(['call/events', 'request/events', 'request/json', 'request/file'])(
  'the lock of %s, on HTTP/2,',
  (path) => {
    const sendMore = (): void => {
      events.next({ data: 'more' });
      file.write('more');
      answer.resolve();
    };

    // Node says nothing then, or no more than "aborted": neither of the stream nor, when the connection has gone, of
    // that.
    it('a lock on HTTP/2 is free when its client resets the stream just when more is sent', async () => {
      const stream = session.request({ ':path': `/${path}` });
      const locks = app.get(LockService);
      await until(() => locks.isLocked(KEY));

      stream.close(constants.NGHTTP2_NO_ERROR);
      await turn(); // It is on its way; the server reads it after this, and before it sends.
      sendMore();

      await until(async () => !(await locks.isLocked(KEY)));
    });
  },
);

// Node tells `pipeline()` nothing of that.
it.each(['call/sent', 'request/sent'])(
  'the lock of %s, on HTTP/2, is free when its client cancels before the answer is sent',
  async (path) => {
    const stream = session.request({ ':path': `/${path}` }).on('error', () => undefined);
    const closed = once(await received.promise, 'close');
    stream.close(constants.NGHTTP2_CANCEL);
    await closed;
    answer.resolve();

    const locks = app.get(LockService);
    await until(async () => !(await locks.isLocked(KEY)));
  },
);

it('a response that the app sends over its stream of HTTP/2 says that it has been sent', async () => {
  session.request({ ':path': '/raw' }).resume();
  const response = await received.promise;
  await once(response, 'close');
  await turn();
  await finished(response);
  expect(response.writableFinished).toBe(true);
});

it('a stream that its client has reset is destroyed outside of the request that the server had first', async () => {
  const user = new AsyncLocalStorage<string>();
  const destroyed = deferred<string | undefined>();
  const stream = {
    closed: true,
    state: { state: constants.NGHTTP2_STREAM_STATE_IDLE },
    once: () => undefined,
    destroy: () => destroyed.resolve(user.getStore()),
  };
  const response = { stream, createPushResponse: () => undefined } as unknown as ServerResponse;
  user.run('alice', () => followStream(response));
  expect(await destroyed.promise).toBeUndefined();
});
