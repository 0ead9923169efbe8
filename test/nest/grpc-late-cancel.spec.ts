import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type CanActivate, Controller, type INestApplicationContext, UseGuards } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { filter, firstValueFrom, NEVER, type Observable } from 'rxjs';
import { type Deferred, deferred, until } from '../support/deferred.js';
import { GrpcCall, GrpcLikeServer, READERS } from '../support/grpc-like.js';

jest.setTimeout(30_000);

const KEY = 'order:7';

/** Resolves when the guard is asked; the guard lets the call in when the test says so. */
let guarded: Deferred;
let letIn: Deferred;

class SlowGuard implements CanActivate {
  async canActivate(): Promise<boolean> {
    guarded.resolve();
    await letIn.promise;
    return true;
  }
}

@Controller()
@UseGuards(SlowGuard)
class Orders {
  @GrpcMethod('Orders')
  @WithLock(KEY, { wait: '20s' })
  async promise() {
    return NEVER;
  }

  @GrpcMethod('Orders')
  @WithLock(KEY, { wait: '20s' })
  observable(): Observable<unknown> {
    return NEVER;
  }

  @GrpcMethod('Orders')
  async value() {
    return 'done';
  }

  @GrpcMethod('Orders')
  async inner() {
    return this.watch();
  }

  @WithLock(KEY, { wait: '20s' })
  async watch() {
    return NEVER;
  }
}

type Start = (server: GrpcLikeServer) => Promise<INestApplicationContext>;

const compiled = () =>
  Test.createTestingModule({ imports: [LockTestingModule.forRoot()], controllers: [Orders] }).compile();

const APPS: Record<string, Start> = {
  'a microservice': async (server) => {
    const app = (await compiled()).createNestMicroservice({ strategy: server, logger: false });
    await app.listen();
    return app;
  },
  'a hybrid app': async (server) => {
    const app = (await compiled()).createNestApplication({ logger: false });
    app.connectMicroservice({ strategy: server });
    await app.startAllMicroservices();
    return app.init();
  },
};

const METHODS = ['Promise', 'Observable', 'Inner'];
const TABLE = Object.keys(APPS).flatMap((app) =>
  Object.keys(READERS).flatMap((reader) => METHODS.map((method) => ({ app, reader, method }))),
);

describe.each(TABLE)('a gRPC call of $app, $reader, of the method $method', ({ app: kind, reader, method }) => {
  let app: INestApplicationContext;
  let locks: LockService;
  let server: GrpcLikeServer;
  let held: Lock | undefined;
  let sent: GrpcCall;

  beforeEach(async () => {
    guarded = deferred();
    letIn = deferred();
    server = new GrpcLikeServer(READERS[reader]!);
    app = await APPS[kind]!(server);
    locks = app.get(LockService);
    held = await locks.lock(KEY);
    sent = new GrpcCall();
    server.receive(method, sent);
    await guarded.promise;
  });

  const queued = () => firstValueFrom(locks.events.pipe(filter(({ type }) => type === 'queued')));
  const isFree = async () => !(await locks.isLocked(KEY));
  const ended = () => until(() => sent.hasEnded, 4_000);

  afterEach(async () => {
    sent.cancel();
    await held?.unlock();
    await app.close();
  });

  it('keeps no lock when its client has cancelled before the guards let it in', async () => {
    sent.cancel();
    letIn.resolve();
    await held!.unlock();
    await ended();
    await until(isFree);
  });

  it('keeps no lock when its client has cancelled while the method waited for it', async () => {
    const waits = queued();
    letIn.resolve();
    await waits;
    sent.cancel();
    await held!.unlock();
    await ended();
    await until(isFree);
  });

  it('keeps its lock until its client cancels', async () => {
    const waits = queued();
    letIn.resolve();
    await waits;
    await held!.unlock();
    await until(() => sent.isRead);
    expect([await isFree(), sent.hasEnded]).toEqual([false, false]);
    sent.cancel();
    await ended();
    await until(isFree);
  });
});

it('a message handler whose third argument only looks like a gRPC call, and has no writable methods, is called', async () => {
  letIn = deferred();
  letIn.resolve();
  const read = deferred<unknown[]>();
  const server = new GrpcLikeServer(async (result) => read.resolve([await firstValueFrom(result)]));
  const app = await APPS['a microservice']!(server);
  const value = () => undefined;
  const call = Object.defineProperties({ cancelled: false }, { on: { value }, addListener: { value } });
  server.receive('Value', call as unknown as GrpcCall);
  expect(await read.promise).toEqual(['done']);
  await app.close();
});
