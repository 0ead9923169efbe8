import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication, Res } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { type LockEvent, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createSecureServer } from 'node:tls';
import { filter, firstValueFrom } from 'rxjs';
import { deferred, turn, until } from '../support/deferred.js';
import { connectSecurely, SECURE_SERVER } from '../support/http/secure.js';
import { closeIfClientHasGone } from '../../lib/http/paused-socket.js';
import { type NewAdapter, PLATFORMS, startApp } from './http-app.js';

const KEY = 'feed:7';
/** How often the library looks after a connection. */
const LOOKS_EVERY_MS = 5000;
const LARGE = 'x'.repeat(200_000);
const UPLOAD = Buffer.alloc(5_000_000, 'u');

let locks: LockService;
const WITH_TLS = () => new FastifyAdapter({ https: SECURE_SERVER });

const SERVERS: [name: string, adapter: NewAdapter, secure?: boolean][] = [
  ...PLATFORMS,
  ['Fastify with TLS', WITH_TLS, true],
];

/** What `hand` has to end. */
let open: ServerResponse;
let answered = 0;
let ran = 0;

/** Gives one value, and then no more. */
function quiet(): AsyncIterableIterator<string> {
  const end = deferred<IteratorResult<string>>();
  const results = [Promise.resolve({ done: false, value: 'first\n' })];
  return {
    next: () => results.pop() ?? end.promise,
    return: () => {
      end.resolve({ done: true, value: undefined });
      return end.promise;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

@Controller()
class Feeds {
  /** Writes its response itself. */
  @Get('hand')
  @WithLock(KEY, { scope: 'request' })
  hand(@Res() response: { raw?: ServerResponse; hijack?: () => void } & ServerResponse) {
    response.hijack?.();
    open = response.raw ?? response;
    open.write('first\n');
  }

  @Get('iterator')
  @WithLock(KEY)
  async iterator() {
    return quiet();
  }

  @Get('waits')
  @WithLock(KEY, { wait: '1m' })
  async waits() {
    ran++;
  }

  @Get('large')
  large() {
    answered++;
    return LARGE;
  }
}

describe.each(SERVERS)('on %s, a connection that Node does not read', (_server, adapter, secure = false) => {
  let app: INestApplication;
  /** The connection of the client, without TLS. */
  let plain: Socket;
  let client: Socket;
  let received: string;
  /** The connection as the server has it. */
  let connection: Socket;

  beforeEach(async () => {
    jest.useFakeTimers({
      doNotFake: ['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'setTimeout'],
    });
    answered = ran = 0;
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Feeds] });
    locks = app.get(LockService);
    const server = app.getHttpServer() as Server;
    const connected = once(server, secure ? 'secureConnection' : 'connection') as Promise<[Socket]>;
    plain = connect((server.address() as { port: number }).port, '127.0.0.1').on('error', () => undefined);
    client = secure ? securely(plain) : plain;
    received = '';
    client.on('data', (chunk) => (received += chunk.toString()));
    [connection] = await connected;
  });

  afterEach(async () => {
    client.destroy();
    connection.destroy();
    await until(isFree);
    await app.close();
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  const securely = (socket: Socket): Socket => connectSecurely({ socket }).on('error', () => undefined);
  const isFree = async () => !(await locks.isLocked(KEY));
  const ask = (...paths: readonly string[]) =>
    void client.write(paths.map((path) => `GET /${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''));
  const nextEvent = (type: LockEvent['type']) =>
    firstValueFrom(locks.events.pipe(filter((event) => event.type === type)));
  const look = () => void jest.advanceTimersByTime(LOOKS_EVERY_MS);

  /** Sends more requests than Node wants to answer behind that one. */
  async function pauseBehind(path: string) {
    ask(path, 'large', 'large', 'large');
    await until(() => answered === 3);
    ask('large');
    await until(() => connection.isPaused());
  }

  async function pauseByBody(path: string) {
    client.write(`GET /${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${UPLOAD.length}\r\n\r\n`);
    client.write(UPLOAD);
    await until(() => connection.isPaused());
  }

  const PAUSES = [
    ['hand', 'pipelined requests', pauseBehind],
    ['hand', 'a body that nobody reads', pauseByBody],
    ['iterator', 'pipelined requests', pauseBehind],
    ['iterator', 'a body that nobody reads', pauseByBody],
  ] as const;

  it.each(PAUSES)(
    'the lock of /%s is released when the client resets the connection behind %s',
    async (path, _, pause) => {
      await pause(path);
      await until(async () => !(await isFree()));
      plain.resetAndDestroy();
      await once(plain, 'close');
      await turn();
      expect([await isFree(), connection.destroyed]).toEqual([false, false]);
      look();
      await until(isFree);
      expect(connection.destroyed).toBe(true);
    },
  );

  it('a request that waits for its lock stops waiting when the client resets the connection', async () => {
    const held = await locks.lock(KEY);
    const [queued, aborted] = [nextEvent('queued'), nextEvent('aborted')];
    await pauseBehind('waits');
    await queued;
    plain.resetAndDestroy();
    await once(plain, 'close');
    look();
    await aborted;
    await held.unlock();
    await turn();
    expect(ran).toBe(0);
  });

  it('a client that is there gets all its responses, and is not read before its turn', async () => {
    await pauseBehind('hand');
    await until(() => received.endsWith('first\n\r\n'));
    const seen = () => [received, connection.bytesRead, connection.bytesWritten, connection.isPaused()];
    const before = seen();
    for (let count = 0; count < 3; count++) {
      look();
      await turn();
    }
    expect([seen(), await isFree()]).toEqual([before, false]);
    open.end('last\n');
    await until(() => received.split(LARGE).length === 5);
    expect(await isFree()).toBe(true);
  });

  it('an upload that nobody reads yet arrives whole', async () => {
    await pauseByBody('hand');
    await until(() => received.endsWith('first\n\r\n'));
    look();
    await turn();
    let uploaded = 0;
    for await (const chunk of open.req) uploaded += (chunk as Buffer).length;
    expect(uploaded).toBe(UPLOAD.length);
    open.end();
    await until(isFree);
  });

  it('the system is asked once for a sign of life of the client, whether Node reads or not', async () => {
    const setKeepAlive = jest.spyOn(Socket.prototype, 'setKeepAlive');
    const asked = () => setKeepAlive.mock.calls.filter((_, call) => setKeepAlive.mock.contexts[call] === connection);
    ask('hand');
    await until(() => received.endsWith('first\n\r\n'));
    expect(asked()).toEqual([[true, 30_000]]);
    ask('large', 'large', 'large');
    await until(() => answered === 3);
    ask('large');
    await until(() => connection.isPaused());
    look();
    expect(asked()).toHaveLength(1);
  });

  it('nobody looks any more when the response has been sent', async () => {
    ask('hand');
    await until(() => received.endsWith('first\n\r\n'));
    expect(jest.getTimerCount()).toBe(1);
    open.end();
    await until(isFree);
    expect(jest.getTimerCount()).toBe(0);
  });
});

it('a client over TLS and a Unix socket stays, as nobody can tell whether it has gone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-'));
  const path = join(folder, 'app.sock');
  const server = createSecureServer(SECURE_SERVER);
  server.listen(path);
  await once(server, 'listening');
  const client = connectSecurely({ path });
  const [connection] = (await once(server, 'secureConnection')) as [Socket];
  connection.pause();
  closeIfClientHasGone(connection);
  expect(connection.destroyed).toBe(false);
  client.destroy();
  connection.destroy();
  server.close();
  await once(server, 'close');
  rmSync(folder, { recursive: true });
});
