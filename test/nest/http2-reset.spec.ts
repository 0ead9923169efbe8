import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Sse, StreamableFile } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import type { Server } from 'node:http';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { PassThrough } from 'node:stream';
import { type Observable, ReplaySubject } from 'rxjs';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';
import { destroyOnceReset } from '../../lib/http/reset-stream.js';
import { startApp } from './http-app.js';

const KEY = 'order:7';
let events: ReplaySubject<{ data: string }>;
let file: PassThrough;
let answer: Deferred;

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
}

describe.each(['call/events', 'request/events', 'request/json', 'request/file'])(
  'the lock of %s, on HTTP/2,',
  (path) => {
    let app: INestApplication;
    let session: ClientHttp2Session;

    beforeEach(async () => {
      events = new ReplaySubject();
      file = new PassThrough();
      answer = deferred();
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

it('a stream that its client has reset is destroyed outside of the request that the server had first', async () => {
  const user = new AsyncLocalStorage<string>();
  const destroyed = deferred<string | undefined>();
  const stream = {
    closed: true,
    state: { state: constants.NGHTTP2_STREAM_STATE_IDLE },
    once: () => undefined,
    destroy: () => destroyed.resolve(user.getStore()),
  };
  user.run('alice', () => destroyOnceReset({ stream } as unknown as Parameters<typeof destroyOnceReset>[0]));
  expect(await destroyed.promise).toBeUndefined();
});
