import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type INestApplication, Req, Sse } from '@nestjs/common';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { EMPTY } from 'rxjs';
import { type EventEmitter, once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { type Deferred, deferred } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

let heard: Deferred<number>;
let connection: EventEmitter;

@Controller()
class Feeds {
  /** Listens when its client has gone, as Nest up to 11.1 does: it subscribes to what an async handler has returned. */
  @Sse('late')
  async late(@Req() given: IncomingMessage & { readonly raw?: IncomingMessage }) {
    const request = given.raw ?? given;
    const gone = once(connection, 'close');
    leave();
    await gone;
    let times = 0;
    request.on('close', () => {
      times++;
      setImmediate(() => heard.resolve(times));
    });
    return EMPTY;
  }

  /** Listens while its client is there. */
  @Sse('early')
  async early(@Req() given: IncomingMessage & { readonly raw?: IncomingMessage }) {
    let times = 0;
    (given.raw ?? given).on('close', () => {
      times++;
      setImmediate(() => heard.resolve(times));
    });
    leave();
    return EMPTY;
  }
}

let leave: () => void;

describe.each(PLATFORMS)('on %s, a handler of server-sent events', (_platform, adapter) => {
  let app: INestApplication;

  afterEach(() => app.close());

  describe.each([true, false])('with http: %s', (http) => {
    it.each(['late', 'early'])('a listener that comes %s hears once that the request has closed', async (path) => {
      heard = deferred();
      app = await startApp(adapter, { imports: [LockTestingModule.forRoot({ http })], controllers: [Feeds] });
      const server = app.getHttpServer() as EventEmitter & { address(): { port: number } };
      server.on('connection', (socket: EventEmitter) => (connection = socket));
      const sent = get({ port: server.address().port, path: `/${path}`, agent: false }).on('error', () => undefined);
      leave = () => sent.destroy();
      expect(await heard.promise).toBe(1);
    });
  });
});
