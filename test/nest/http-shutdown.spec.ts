import { describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication, Injectable, Module, type OnModuleDestroy, Post } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Agent, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { LockService, LockUnavailableError, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
import request from 'supertest';
import { aborted, deferred, turn, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

const GRACE_MS = 100;

describe.each(PLATFORMS)('on %s, while the app shuts down,', (_platform, adapter) => {
  it('a handler that runs keeps its lock while the app shuts down; waiters and new callers are refused', async () => {
    const [inside, goOn] = [deferred(), deferred()];

    @Controller('jobs')
    class JobsController {
      constructor(private readonly locks: LockService) {}

      @Post()
      @WithLock('job')
      async run() {
        inside.resolve();
        await goOn.promise;
        return { held: this.locks.current('job')?.isHeld };
      }
    }

    const app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [JobsController] });
    const locks = app.get(LockService);
    const answer = request(app.getHttpServer())
      .post('/jobs')
      .then(({ status, body }) => ({ status, body }));
    await inside.promise;
    const waiting = locks.lock('job').catch((error: unknown) => error);

    const closing = app.close();
    expect(await waiting).toBeInstanceOf(LockUnavailableError);
    await until(() =>
      locks.withLock('other', () => false).catch((error: unknown) => error instanceof LockUnavailableError),
    );
    goOn.resolve();
    expect(await answer).toEqual({ status: 201, body: { held: true } });
    await closing;
  });

  it('a worker that fetches one job after the other fails few of them while the app waits for a request', async () => {
    const { JobsController, inside, goOn } = jobs();
    const app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [JobsController] });
    const locks = app.get(LockService);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const slow = sent(portOf(app), agent, 'GET');
    await inside.promise;
    const closing = app.close();
    await until(() => locks.isEnding);
    const startedAt = performance.now();
    await expect(locks.lock('job')).rejects.toBeInstanceOf(LockUnavailableError);
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    const refused = locks.lock('job').catch((error: unknown) => error);
    goOn.resolve();
    expect(await slow).toEqual({ status: 200 });
    agent.destroy();
    await closing;
    expect(await refused).toBeInstanceOf(LockUnavailableError);
  });

  it('a worker that fetches one job after the other fails few of them while the app waits for a lock', async () => {
    const app = await startApp(adapter, { imports: [LockTestingModule.forRoot()] });
    const locks = app.get(LockService);
    const held = await locks.lock('job');
    const closing = app.close();
    await until(() => locks.isEnding);
    // Nest has no request to wait for.
    for (let turns = 0; turns < 10; turns++) await turn();
    let isRefused = false;
    const refused = locks.lock('other').catch((error: unknown) => ((isRefused = true), error));
    for (let turns = 0; turns < 10; turns++) await turn();
    expect(isRefused).toBe(false);
    await held.unlock();
    await closing;
    expect(await refused).toBeInstanceOf(LockUnavailableError);
    await expect(locks.lock('other')).rejects.toBeInstanceOf(LockUnavailableError);
  });

  it.each(['a new connection', 'a connection that is kept alive'])(
    'a shutdown tells a handler to stop when the grace is over, and lets nobody else in until it has, on %s',
    async (connection) => {
      const [inside, goOn] = [deferred<AbortSignal>(), deferred()];

      @Controller('jobs')
      class JobsController {
        constructor(private readonly locks: LockService) {}

        @Get()
        list() {
          return [];
        }

        @Post()
        @WithLock('job')
        async run() {
          inside.resolve(this.locks.current('job')!.signal);
          await goOn.promise;
        }
      }

      const store = new MemoryLockStore();
      const app = await startApp(adapter, {
        imports: [LockTestingModule.forRoot({ store, shutdownGrace: GRACE_MS, lease: 600 })],
        controllers: [JobsController],
      });
      const agent = new Agent({ keepAlive: connection !== 'a new connection', maxSockets: 1 });
      const send = (method: string) => sent(portOf(app), agent, method);
      await send('GET');
      const answer = send('POST');
      const signal = await inside.promise;

      const startedAt = performance.now();
      const closing = app.close();
      expect(await aborted(signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(GRACE_MS - 1);
      const renewals = jest.spyOn(store, 'renew');
      await until(() => renewals.mock.calls.length > 1);
      expect(await store.isLocked('job')).toBe(true);

      goOn.resolve();
      expect(await answer).toEqual({ status: 503, code: 'LOCK_LOST' });
      expect(await store.isLocked('job')).toBe(false);
      agent.destroy();
      await closing;
    },
  );
});

// Fastify closes its connections itself.
it('a request that is refused because the app shuts down ends its connection, on Express', async () => {
  const { JobsController, inside, goOn } = jobs();
  const [[, express]] = PLATFORMS as [(typeof PLATFORMS)[0]];
  const app = await startApp(express, { imports: [LockTestingModule.forRoot()], controllers: [JobsController] });
  const port = portOf(app);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const before = sent(port, agent, 'GET');
  const next = sent(port, agent, 'POST');
  await inside.promise;
  const closing = app.close();
  await until(() => !(app.getHttpServer() as Server).listening);
  goOn.resolve();
  expect(await before).toEqual({ status: 200 });
  expect(await next).toEqual({ status: 503, code: 'LOCK_UNAVAILABLE' });
  // On the same connection, which the server would keep as long as its client sends.
  await expect(sent(port, agent, 'POST')).rejects.toMatchObject({
    code: expect.stringMatching(/ECONN(REFUSED|RESET)/),
  });
  await closing;
  agent.destroy();
});

it('a shutdown counts the grace from before the first hook of the app, which can still take locks', async () => {
  const [inside, lost] = [deferred(), deferred<unknown>()];

  @Module({ imports: [LockTestingModule.forRoot({ shutdownGrace: GRACE_MS })] })
  class JobsModule implements OnModuleDestroy {
    private job?: Promise<void>;
    constructor(private readonly locks: LockService) {}

    start() {
      this.job = this.locks.withLock('job', async ({ signal }) => {
        inside.resolve();
        await aborted(signal);
      });
    }

    async onModuleDestroy() {
      await this.locks.withLock('the state of the jobs', () => undefined);
      await this.job!.catch((error: unknown) => lost.resolve(error));
    }
  }

  const app = await Test.createTestingModule({ imports: [JobsModule] }).compile();
  await app.init();
  app.get(JobsModule).start();
  await inside.promise;
  await app.close();
  expect(await lost.promise).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
});

it('a shutdown does not wait for a lost lock of several keys that its owner unlocks', async () => {
  const app = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot({ shutdownGrace: '1h' })],
  }).compile();
  const locks = app.get(LockService);
  const lock = await locks.lock(['a', 'b']);
  await locks.forceUnlock('a');
  await aborted(lock.signal);
  const closing = app.close();
  await lock.unlock().catch((error: unknown) => expect(error).toHaveProperty('code', 'LOCK_LOST'));
  await closing;
});

it('a job that skips a busy key is refused when the app shuts down while it waits', async () => {
  @Injectable()
  class Jobs {
    @WithLock('job', { onTimeout: 'skip' })
    async run() {}
  }

  const app = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [Jobs] }).compile();
  await using held = await app.get(LockService).lock('job');
  const run = app.get(Jobs).run();
  const closing = app.close();
  await expect(run).rejects.toHaveProperty('code', 'LOCK_UNAVAILABLE');
  await held.unlock();
  await closing;
});

/** Jobs that are listed as soon as the test says so, and that run under a lock. */
function jobs() {
  const [inside, goOn] = [deferred(), deferred()];

  @Controller('jobs')
  class JobsController {
    @Get()
    async list() {
      inside.resolve();
      await goOn.promise;
      return [];
    }

    @Post()
    @WithLock('job')
    async run() {}
  }

  return { JobsController, inside, goOn };
}

const portOf = (app: INestApplication) => ((app.getHttpServer() as Server).address() as AddressInfo).port;

/** Sends a request to the jobs of the app. */
function sent(port: number, agent: Agent, method: string): Promise<{ status: number | undefined; code?: string }> {
  return new Promise((resolve, reject) => {
    const call = httpRequest({ port, path: '/jobs', method, agent }, (response) => {
      void json(response).then(
        (body) => resolve({ status: response.statusCode, code: (body as { code?: string }).code }),
        reject,
      );
    });
    call.on('error', reject).end();
  });
}
