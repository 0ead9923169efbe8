import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication, Sse } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { get, type Server } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { concat, NEVER, of } from 'rxjs';
import { until } from '../support/deferred.js';
import { connectSecurely, SECURE_SERVER } from '../support/http/secure.js';
import { type NewAdapter, PLATFORMS, startApp } from './http-app.js';

const KEY = 'feed:7';
/** Where Linux shows the connections of a process, with their timers. */
const CONNECTIONS = '/proc/net/tcp';
/** The timer that asks for a sign of life. */
const KEEP_ALIVE = '02';

type Asks = (port: number, path: string) => Socket;

/** Sends a request by HTTP/1, on a connection that stays open. */
function send(socket: Socket, path: string): Socket {
  socket.on('error', () => undefined).write(`GET /${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return socket.resume();
}

const plainly: Asks = (port, path) => send(connect(port, '127.0.0.1'), path);

const securely: Asks = (port, path) => {
  const socket = connect(port, '127.0.0.1');
  send(connectSecurely({ socket }), path);
  return socket;
};

const byHttp2: Asks = (port, path) => {
  const socket = connect(port, '127.0.0.1');
  const session = connectHttp2('http://localhost', { createConnection: () => socket });
  session.on('error', () => undefined);
  session.request({ ':path': `/${path}` }).on('error', () => undefined);
  return socket;
};

const SERVERS: [name: string, adapter: NewAdapter, asks: Asks][] = [
  ...PLATFORMS.map(([name, adapter]): [string, NewAdapter, Asks] => [name, adapter, plainly]),
  ['Fastify with TLS', () => new FastifyAdapter({ https: SECURE_SERVER }), securely],
  ['Fastify with HTTP/2', () => new FastifyAdapter({ http2: true }), byHttp2],
];

let hasBegun = false;

const quiet = () => concat(of({ data: 'first' }), NEVER);

@Controller()
class Feeds {
  @Sse('call')
  @WithLock(KEY)
  inCall() {
    return quiet();
  }

  @Sse('request')
  @WithLock(KEY, { scope: 'request' })
  inRequest() {
    return quiet();
  }

  @Get('waits')
  @WithLock(KEY, { wait: '1m' })
  async waits() {}

  @Get('short')
  @WithLock(KEY, { scope: 'request' })
  async short() {
    return { id: 7 };
  }

  @Get('unlocked')
  unlocked() {
    hasBegun = true;
    return NEVER;
  }
}

/** Returns the timer that runs for a connection as the server has it, and how many seconds it has left. */
function timerOf({ remotePort = 0, localPort = 0 }: Socket): { timer?: string; seconds?: number } {
  const [server, other] = [remotePort, localPort].map((port) => port.toString(16).padStart(4, '0'));
  const row = new RegExp(`:${server} \\w+:${other} \\w+ \\w+:\\w+ (\\w+):(\\w+)`, 'i');
  const [, timer, left] = row.exec(readFileSync(CONNECTIONS, 'utf8')) ?? [];
  return { timer, seconds: left === undefined ? undefined : parseInt(left, 16) / 100 };
}

const ifShown = existsSync(CONNECTIONS) ? it : it.skip;

describe.each(SERVERS)('on %s, the host of a client may vanish without a word', (_server, adapter, asks) => {
  let app: INestApplication;
  let locks: LockService;
  let port: number;
  let client: Socket;

  beforeEach(async () => {
    hasBegun = false;
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Feeds] });
    locks = app.get(LockService);
    ({ port } = (app.getHttpServer() as Server).address() as { port: number });
  });

  afterEach(async () => {
    client.destroy();
    await until(async () => !(await locks.isLocked(KEY)));
    await app.close();
    jest.restoreAllMocks();
  });

  /** Waits until the system will ask for a sign of life of the client. */
  async function expectKeepAlive(): Promise<void> {
    await until(() => timerOf(client).timer === KEEP_ALIVE);
    const { seconds } = timerOf(client);
    expect(seconds).toBeGreaterThan(20);
    expect(seconds).toBeLessThanOrEqual(30.1);
  }

  ifShown.each(['call', 'request'])('the system looks after the client of a stream with a lock (%s)', async (path) => {
    client = asks(port, path);
    await until(() => locks.isLocked(KEY));
    await expectKeepAlive();
  });

  ifShown('the system looks after a client that waits for a lock', async () => {
    const held = await locks.lock(KEY);
    client = asks(port, 'waits');
    await expectKeepAlive();
    await held.unlock();
  });

  it('the system is not asked to look after a client without a lock', async () => {
    const setKeepAlive = jest.spyOn(Socket.prototype, 'setKeepAlive');
    client = asks(port, 'unlocked');
    await until(() => hasBegun);
    expect(setKeepAlive).not.toHaveBeenCalled();
  });
});

describe('a connection', () => {
  const start = (adapter: NewAdapter) =>
    startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Feeds] });

  it.each(PLATFORMS)('is asked for a sign of life once, however many requests it has (%s)', async (_, adapter) => {
    const app = await start(adapter);
    const setKeepAlive = jest.spyOn(Socket.prototype, 'setKeepAlive');
    const { port } = (app.getHttpServer() as Server).address() as { port: number };
    const client = plainly(port, 'short');
    for (let requests = 0; requests < 3; requests++) {
      await once(client, 'data');
      send(client, 'short');
    }
    expect(setKeepAlive.mock.calls).toEqual([[true, 30_000]]);
    client.destroy();
    await app.close();
    jest.restoreAllMocks();
  });

  it.each(PLATFORMS)('is served on a Unix socket, which needs no sign of life (%s)', async (_, adapter) => {
    const app = await start(adapter);
    const inner = app.getHttpServer() as Server;
    const socketPath = join(tmpdir(), `lost-host-${process.pid}-${Date.now()}.sock`);
    await new Promise<void>((resolve) => inner.close(() => resolve()));
    await new Promise<void>((resolve) => inner.listen(socketPath, resolve));
    const status = await new Promise((resolve) =>
      get({ socketPath, path: '/short' }, (answer) => resolve(answer.resume().statusCode)),
    );
    expect(status).toBe(200);
    await app.close();
  });
});
