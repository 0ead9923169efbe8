import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
  Param,
  Res,
  StreamableFile,
} from '@nestjs/common';
import { LockService, type LockTimeoutError, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { EventEmitter, once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';
import { type PipeliningClient, pipeliningClient } from '../support/http/pipelining-client.js';
import { PLATFORMS, startApp } from './http-app.js';

const KEY = 'order:7';
const TABLE = PLATFORMS.flatMap(([platform, adapter]) =>
  (['call', 'request'] as const).map((scope) => ({ platform, adapter, scope })),
);

/** The server says `ahead`, `asks`, `inside`. */
const events = new EventEmitter();
const ran: string[] = [];
/** The answer ahead, and the handlers, end when the test says so. */
let ahead: Deferred;
let goOn: Deferred;
let file: PassThrough;
let behind: ServerResponse | undefined;

@Controller()
class Orders {
  constructor(private readonly locks: LockService) {}

  @Get('ahead')
  async ahead() {
    events.emit('ahead');
    await ahead.promise;
    return 'the answer ahead';
  }

  @Get('call/json')
  @WithLock(KEY)
  async jsonInCall() {
    return this.#json();
  }

  @Get('request/json')
  @WithLock(KEY, { scope: 'request' })
  async jsonInRequest() {
    return this.#json();
  }

  @Get('request/error')
  @WithLock(KEY, { scope: 'request' })
  async error() {
    await this.#json();
    throw new HttpException('no', 418);
  }

  @Get('request/file')
  @WithLock(KEY, { scope: 'request' })
  file() {
    return new StreamableFile(file);
  }

  @Get('request/broken')
  @WithLock(KEY, { scope: 'request' })
  async broken(@Res() response: { raw?: ServerResponse } & ServerResponse) {
    await this.#json();
    (response.raw ?? response).destroy();
  }

  /** Ends its answer when the client has gone. */
  @Get('whole')
  whole(@Res() response: { raw?: ServerResponse } & ServerResponse) {
    const raw = response.raw ?? response;
    raw.on('close', () => raw.end());
    raw.writeHead(200, { 'content-length': 3 });
    raw.write('all');
    events.emit('ahead');
  }

  /** Its answer has been sent by a middleware. */
  @Get('accepted')
  accepted(@Res() _response: ServerResponse) {
    events.emit('inside');
  }

  /** Sends its answer by itself. */
  @Get('request/sent')
  @WithLock(KEY, { scope: 'request' })
  async sent(@Res() response: { raw?: ServerResponse } & ServerResponse) {
    behind = response.raw ?? response;
    events.emit('inside');
    await goOn.promise;
    await pipeline(file, behind);
  }

  @Get('request/many/:number')
  @WithLock(
    (context: ExecutionContext) => {
      events.emit('asks');
      return `many:${context.switchToHttp().getRequest<{ params: { number: string } }>().params.number}`;
    },
    { scope: 'request' },
  )
  async many(@Param('number') number: string) {
    return { number };
  }

  /** Ends its answer by hand, and works on. */
  @Get('call/early')
  @WithLock(KEY)
  earlyInCall(@Res() response: { raw?: ServerResponse } & ServerResponse) {
    return this.#early(response.raw ?? response);
  }

  @Get('request/early')
  @WithLock(KEY, { scope: 'request' })
  earlyInRequest(@Res() response: { raw?: ServerResponse } & ServerResponse) {
    return this.#early(response.raw ?? response);
  }

  @Get('slow')
  slow(@Res({ passthrough: true }) response: { raw?: ServerResponse } & ServerResponse) {
    behind = response.raw ?? response;
    return new StreamableFile(Readable.from(this.#slow(), { objectMode: false }));
  }

  @Get('call/large')
  @WithLock(KEY)
  async largeInCall() {
    return LARGE;
  }

  @Get('request/large')
  @WithLock(KEY, { scope: 'request' })
  async largeInRequest() {
    return LARGE;
  }

  async #early(response: ServerResponse) {
    events.emit('early');
    await ahead.promise;
    response.end('the answer ahead');
    await goOn.promise;
  }

  /** Goes on after this only when the answer ahead has ended. */
  async *#slow() {
    yield Buffer.alloc(64 * 1024);
    yield Buffer.alloc(64 * 1024);
    yield Buffer.alloc(64 * 1024);
    ran.push(`in ${this.locks.current()?.key ?? 'no lock'}`);
    yield await this.locks.withLock(KEY, () => 'got it', { wait: 0 }).catch(({ code }: LockTimeoutError) => code);
  }

  async #json() {
    events.emit('inside');
    await goOn.promise;
    ran.push('body');
    return { id: 7 };
  }
}

/** More than the system takes for a client that does not read. */
const LARGE = 'x'.repeat(32 * 1024 * 1024);

describe.each(TABLE)("on $platform, a handler's lock with scope: '$scope'", ({ platform, adapter, scope }) => {
  let app: INestApplication;
  let locks: LockService;
  let client: PipeliningClient;
  let connection: Socket;

  beforeEach(async () => {
    [ahead, goOn, file, behind] = [deferred(), deferred(), new PassThrough(), undefined];
    ran.length = 0;
    await start();
  });

  afterEach(async () => {
    for (const { resolve } of [ahead, goOn]) resolve();
    file.end();
    await end();
    events.removeAllListeners();
  });

  async function start(options: { http?: boolean } = {}) {
    const imports = [LockTestingModule.forRoot({ wait: '1m', ...options })];
    app = await startApp(adapter, { imports, controllers: [Orders] }, (app) => {
      app.use('/accepted', (_request: unknown, response: ServerResponse, next: () => void) => {
        response.on('close', next).end('accepted');
      });
    });
    locks = app.get(LockService);
    const connected = once(server(), 'connection') as Promise<[Socket]>;
    client = await pipeliningClient(port());
    [connection] = await connected;
  }

  async function end() {
    await client.leave();
    await until(isFree);
    await app.close();
  }

  const server = () => app.getHttpServer() as Server;
  const port = () => (server().address() as { port: number }).port;
  const isFree = async () => !(await locks.isLocked(KEY));
  const somebodyWaits = async () =>
    (await locks.lock(KEY, { maxWaiters: 1, wait: 1 }).catch(({ reason }: LockTimeoutError) => reason)) ===
    'too-many-waiters';

  async function insideBehind(path: string) {
    const inside = once(events, 'inside');
    client.ask('ahead', `${scope}/${path}`);
    await inside;
    expect(await isFree()).toBe(false);
  }

  it('the lock of a pipelined request is free when its handler has ended, before its response is sent', async () => {
    await insideBehind('json');
    goOn.resolve();
    await until(isFree);
    expect(client.received()).toBe('');
    ahead.resolve();
    await until(() => /the answer ahead.*\{"id":7\}/s.test(client.received()));
  });

  it.each([true, false])(
    'the lock of a pipelined request is not that of the next one on the connection (http: %j)',
    async (http) => {
      await end();
      await start({ http });
      const early = once(events, 'early');
      client.ask(`${scope}/early`, 'slow');
      await early;
      await until(() => behind?.writableNeedDrain === true);
      ahead.resolve();
      await until(() => client.received().includes('LOCK_TIMEOUT') || client.received().includes('got it'));
      expect(ran).toEqual(['in no lock']);
      expect(client.received()).toContain('LOCK_TIMEOUT');
      goOn.resolve();
    },
  );

  it('the lock of a pipelined request is held until the body has ended when the client goes', async () => {
    await insideBehind('json');
    const gone = once(connection, 'close');
    await client.leave();
    await gone;
    await turn();
    expect(await isFree()).toBe(false);
    goOn.resolve();
    await until(isFree);
    expect(ran).toEqual(['body']);
  });

  it('a pipelined request stops waiting for its lock when the client goes, and its body does not run', async () => {
    const held = await locks.lock(KEY);
    client.ask('ahead', `${scope}/json`);
    await until(somebodyWaits);
    await client.leave();
    await until(async () => !(await somebodyWaits()));
    await held.unlock();
    await (await locks.lock(KEY)).unlock();
    await turn();
    expect([ran, await isFree()]).toEqual([[], true]);
  });

  it(`a lock is ${scope === 'call' ? 'free' : 'held'} while a client does not read a large answer`, async () => {
    const reader = connect(port(), '127.0.0.1')
      .on('error', () => undefined)
      .pause();
    reader.write(`GET /${scope}/large HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await once(reader, 'readable');
    if (scope === 'request') expect(await isFree()).toBe(false);
    else await until(isFree);
    reader.destroy();
    await until(isFree);
  });

  if (scope === 'call') return;

  it.each(['error', 'broken'])('the lock of a pipelined request is free after the answer %j', async (path) => {
    await insideBehind(path);
    goOn.resolve();
    await until(isFree);
  });

  it('the lock of a pipelined request is free when the client goes before a file has ended', async () => {
    client.ask('ahead', 'request/file');
    file.write('half');
    await until(async () => !(await isFree()));
    await client.leave();
    await until(isFree);
  });

  it.each(['begins', 'has begun', 'has ended'])(
    'a handler ends whose client goes before its pipeline %s',
    async (state) => {
      await insideBehind('sent');
      const closes: string[] = [];
      behind!.on('close', () => closes.push('close'));
      if (state === 'has ended') file.end('all');
      if (state !== 'begins') goOn.resolve();
      if (state === 'has ended') await until(() => behind!.writableEnded);
      await client.leave();
      await until(() => closes.length > 0);
      goOn.resolve();
      await until(isFree);
      expect([file.destroyed, closes]).toEqual([true, ['close']]);
    },
  );

  it('a handler ends that waits behind an answer which ends when the client goes', async () => {
    const inside = once(events, 'inside');
    client.ask('whole', 'request/sent');
    await inside;
    await until(() => client.received().endsWith('all'));
    goOn.resolve();
    await client.leave();
    await until(isFree);
  });

  it('a connection has one listener more, however many of its requests wait, and none later', async () => {
    const listeners = () => connection.listenerCount('close');
    const idle = listeners();
    client.ask('ahead');
    await once(events, 'ahead');
    const before = listeners();
    const numbers = Array.from({ length: 30 }, (_, number) => number);
    const held = await Promise.all(numbers.map((number) => locks.lock(`many:${number}`)));
    let asked = 0;
    events.on('asks', () => asked++);
    client.ask(...numbers.map((number) => `request/many/${number}`));
    await until(() => asked === numbers.length);
    await turn();
    expect(listeners()).toBe(before + 1);
    await Promise.all(held.map((lock) => lock.unlock()));
    ahead.resolve();
    await until(() => client.received().includes('{"number":"29"}'));
    await until(() => listeners() === idle);
  });

  // Fastify calls no handler then.
  if (platform === 'Fastify') return;

  it('a connection has no listener of a request whose answer a middleware has sent', async () => {
    const idle = connection.listenerCount('close');
    const inside = once(events, 'inside');
    client.ask('accepted');
    await inside;
    await until(() => client.received().includes('accepted'));
    expect(connection.listenerCount('close')).toBe(idle);
  });
});
