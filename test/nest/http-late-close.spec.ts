import { afterEach, describe, expect, it } from '@jest/globals';
import { Body, Controller, type INestApplication, Req, RequestMethod, Sse } from '@nestjs/common';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { concat, EMPTY, NEVER, of } from 'rxjs';
import { type EventEmitter, once } from 'node:events';
import { get, type IncomingMessage, request } from 'node:http';
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
let closings: number;

@Controller()
class Chats {
  /** The request has closed by now, because its body has been read. */
  @Sse('chat', { method: RequestMethod.POST })
  async chat(@Req() given: IncomingMessage & { readonly raw?: IncomingMessage }, @Body() { word }: { word: string }) {
    (given.raw ?? given).on('close', () => {
      closings++;
      setImmediate(() => heard.resolve(closings));
    });
    return concat(of({ data: word }), NEVER);
  }
}

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

  it.each([true, false])(
    'whose request has a body hears once that it has closed: when its client goes, with http: %s',
    async (http) => {
      heard = deferred();
      closings = 0;
      app = await startApp(adapter, { imports: [LockTestingModule.forRoot({ http })], controllers: [Chats] });
      const { port } = (app.getHttpServer() as { address(): { port: number } }).address();
      const headers = { 'content-type': 'application/json' };
      const sent = request({ port, path: '/chat', method: 'POST', headers, agent: false }).on('error', () => undefined);
      sent.end(JSON.stringify({ word: 'hello' }));
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      // What breaks off leaves.
      for await (const chunk of response) {
        expect(closings).toBe(0);
        if (String(chunk).includes('hello')) break;
      }
      expect(await heard.promise).toBe(1);
    },
  );
});
