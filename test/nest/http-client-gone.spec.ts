import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  HttpCode,
  type INestApplication,
  Injectable,
  type NestInterceptor,
  Param,
  Post,
  type Provider,
  Sse,
  type Type,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
import { EventEmitter, once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, type Server, request } from 'node:http';
import type { Socket } from 'node:net';
import { concatMap, from, Observable, of, tap } from 'rxjs';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';
import { oneAtATime } from './one-at-a-time.js';
import { ofAnotherProcess } from '../support/stores/other-process.js';

/** What the server says of its clients: `<client> asks`, `<client> is inside`, `<client> failed`. */
const events = new EventEmitter();
const ran: string[] = [];
/** The body of `slow` ends, and the guard lets in, when the test says so. */
let goOn: Deferred;

const OTHER = ofAnotherProcess('account:42');

class SlowStore extends MemoryLockStore {
  /** It answers when the test says so. */
  answers: Deferred | undefined;

  override async acquire(command: Parameters<MemoryLockStore['acquire']>[0]) {
    if (this.answers && command !== OTHER) {
      events.emit('the store is asked');
      await this.answers.promise;
    }
    return super.acquire(command);
  }
}

@Injectable()
class Accounts {
  @WithLock(
    (id: string, client: string) => {
      events.emit(`${client} asks`);
      return `account:${id}`;
    },
    { wait: '1m' },
  )
  async withdraw(_id: string, client: string) {
    events.emit(`${client} is inside`);
    if (client === 'slow') await goOn.promise;
    ran.push(client);
    return { client };
  }

  /** Books the parts of a settlement, one after the other. */
  @WithLock((id: string) => `account:${id}`)
  async settle(id: string): Promise<void> {
    events.emit('settling');
    await Promise.all(['slow', 'gone'].map((part) => this.withdraw(id, part)));
  }

  /** Needs a second lock. */
  @WithLock((id: string) => `order:${id}`)
  async pay(id: string): Promise<unknown> {
    return this.withdraw(id, 'gone');
  }

  /** Lets many in, one by one. */
  @WithLock('room', { permits: 5 })
  async inRoom(id: string): Promise<unknown> {
    return this.withdraw(id, 'gone');
  }

  @WithLock('tariff', { mode: 'read' })
  async byTariff(id: string): Promise<unknown> {
    return this.withdraw(id, 'gone');
  }

  /** Starts work that it does not await. */
  @WithLock((id: string) => `order:${id}`)
  async paid(id: string): Promise<void> {
    void this.withdraw(id, 'gone');
    await goOn.promise;
  }

  /** Starts work as its last step. */
  @WithLock((id: string) => `order:${id}`)
  async paidAtLast(id: string): Promise<void> {
    void this.withdraw(id, 'gone');
  }

  /** What is done for its values can't be stopped. */
  @WithLock((id: string) => `feed:${id}`)
  feed(id: string): Observable<unknown> {
    return from([1, 2]).pipe(
      concatMap(async () => {
        const done = await this.withdraw(id, 'gone').catch((error: unknown) => events.emit('gone failed', error));
        return { data: done };
      }),
    );
  }

  /** Its steps call work that has a lock of its own, which goes on to its end. */
  @WithLock('import', { wait: '1m' })
  import(id: string): Observable<unknown> {
    return from([1]).pipe(
      concatMap(async () => {
        await this.pay(id);
        events.emit('paid');
        return { data: 'paid' };
      }),
    );
  }

  /** Starts work as its last step, and completes. */
  @WithLock('report')
  async *report(id: string) {
    yield 'all';
    void this.withdraw(id, 'gone');
  }

  @WithLock((id: string) => `account:${id}`)
  async history(_id: string, client: string): Promise<Observable<string>> {
    events.emit(`${client} is inside`);
    await goOn.promise;
    return of(client);
  }
}

class SlowGuard implements CanActivate {
  async canActivate() {
    events.emit('the guard is asked');
    await goOn.promise;
    return true;
  }
}

class SlowInterceptor implements NestInterceptor {
  async intercept(_context: ExecutionContext, next: CallHandler) {
    events.emit('the interceptor is asked');
    await goOn.promise;
    return next.handle().pipe(tap({ error: (error: unknown) => events.emit('gone failed', error) }));
  }
}

@Controller('accounts')
class AccountsController {
  constructor(private readonly accounts: Accounts) {}

  @Post(':id/:client')
  async withdraw(@Param('id') id: string, @Param('client') client: string) {
    try {
      return await this.accounts.withdraw(id, client);
    } catch (error) {
      events.emit(`${client} failed`, error);
      throw error;
    }
  }

  @Post('later/:id/:client')
  @HttpCode(202)
  later(@Param('id') id: string, @Param('client') client: string) {
    void this.withdraw(id, client);
    return { client };
  }

  @Post('settle/:id/all')
  async settle(@Param('id') id: string) {
    await this.accounts.settle(id);
    events.emit('settled');
  }

  @Post('settle-in-request/:id/all')
  @WithLock('account:<params.id>', { scope: 'request' })
  async settleInRequest(@Param('id') id: string) {
    return this.settle(id);
  }

  @Post('pay/:id/all')
  async pay(@Param('id') id: string) {
    return this.accounts.pay(id);
  }

  @Post('room/:id/all')
  inRoom(@Param('id') id: string) {
    return this.failing(this.accounts.inRoom(id));
  }

  @Post('paid/:id/all')
  async paid(@Param('id') id: string) {
    await this.accounts.paid(id);
    events.emit('paid');
  }

  @Post('paid-at-last/:id/all')
  async paidAtLast(@Param('id') id: string) {
    await this.accounts.paidAtLast(id);
    events.emit('paid');
    await goOn.promise;
  }

  @Sse('import/:id')
  import(@Param('id') id: string) {
    return this.accounts.import(id);
  }

  @Post('report/:id/all')
  async report(@Param('id') id: string) {
    for await (const part of this.accounts.report(id)) events.emit(part);
    await turn();
    events.emit('paid');
    await goOn.promise;
  }

  @Post('twice/:id/all')
  async twice(@Param('id') id: string) {
    await this.accounts.withdraw(id, 'first');
    events.emit('between');
    await goOn.promise;
    return this.withdraw(id, 'gone');
  }

  @Post('tariff/:id/all')
  byTariff(@Param('id') id: string) {
    return this.failing(this.accounts.byTariff(id));
  }

  private async failing(work: Promise<unknown>) {
    return work.catch((error: unknown) => events.emit('gone failed', error));
  }

  @Sse('feed/:id')
  feed(@Param('id') id: string) {
    return this.accounts.feed(id);
  }

  /** The upper lock is acquired second, by an interceptor that is called when its client has gone. */
  @Post('second/:id/all')
  @WithLock('account:<params.id>', { scope: 'request', wait: '1m' })
  @UseInterceptors(SlowInterceptor)
  @WithLock('order:<params.id>', { scope: 'request' })
  second() {
    ran.push('second');
  }

  @Post('guarded-request/:id/all')
  @UseGuards(SlowGuard)
  @WithLock('account:<params.id>', { scope: 'request' })
  @UseInterceptors(SlowInterceptor)
  guardedRequest() {
    ran.push('guarded');
  }

  @Post('history/:id/:client')
  history(@Param('id') id: string, @Param('client') client: string) {
    return this.accounts.history(id, client);
  }

  @Post('guarded/:id/:client')
  @UseGuards(SlowGuard)
  guarded(@Param('id') id: string, @Param('client') client: string) {
    return this.withdraw(id, client);
  }
}

describe.each(PLATFORMS)('on %s, when the client goes away', (_platform, adapter) => {
  const store = new SlowStore();
  let app: INestApplication;
  let locks: LockService;
  let held: Lock;
  /** The one that the last client has made. */
  let connection: Socket;

  async function start(options: { http?: boolean } = {}, providers: Provider[] = [], modules: Type[] = []) {
    const imports = [LockTestingModule.forRoot({ store, ...options }), ...modules];
    app = await startApp(adapter, { imports, controllers: [AccountsController], providers: [Accounts, ...providers] });
    server().on('connection', (socket: Socket) => {
      connection = socket;
      socket.once('close', () => events.emit('a client has left'));
    });
    locks = app.get(LockService);
    held = await locks.lock('account:42');
  }

  async function restart(...how: Parameters<typeof start>) {
    await held.unlock();
    await app.close();
    await start(...how);
  }

  beforeEach(async () => {
    goOn = deferred();
    ran.length = 0;
    await start();
  });

  afterEach(async () => {
    await held.unlock();
    await app.close();
    expect(await store.isLocked('account:42')).toBe(false);
    events.removeAllListeners();
  });

  const server = () => app.getHttpServer() as Server;

  /** Sends a request on a socket of its own, and waits for what the server says. */
  async function send(
    path: string,
    saying: string,
    agent: Agent | false = false,
    method = 'POST',
  ): Promise<ClientRequest> {
    const { port } = server().address() as { port: number };
    const said = once(events, saying);
    const sent = request({ port, path: `/accounts/${path}`, method, agent }).on('error', () => undefined);
    sent.end();
    await said;
    return sent;
  }

  /** Ends a client, and waits until the server has seen that. */
  async function leave(client: ClientRequest): Promise<void> {
    const left = once(events, 'a client has left');
    client.destroy();
    await left;
  }

  /** Ends the client `gone`, and waits for the error its handler gets. */
  async function failureOf(gone: ClientRequest): Promise<unknown> {
    const failed = once(events, 'gone failed');
    gone.destroy();
    return ((await failed) as unknown[])[0];
  }

  /** Lets the handler of the client `gone` go on, and waits for the error it gets. */
  async function failureLater(): Promise<unknown> {
    const failed = once(events, 'gone failed');
    goOn.resolve();
    return ((await failed) as unknown[])[0];
  }

  async function statusOf(sent: ClientRequest): Promise<number | undefined> {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  }

  it('a client that goes while it waits leaves the queue to the next, and its body never runs', async () => {
    const told: string[] = [];
    locks.events.subscribe(({ type }) => told.push(type));
    const gone = await send('42/gone', 'gone asks');
    const next = await send('42/next', 'next asks');
    expect(await failureOf(gone)).toMatchObject({ status: 499 });
    expect(told).toEqual(['queued', 'queued', 'waited', 'aborted']);

    const answered = statusOf(next);
    await held.unlock();
    expect(await answered).toBe(201);
    expect(ran).toEqual(['next']);
  });

  it('a client that goes while it waits no longer counts as a waiter', async () => {
    const gone = await send('42/gone', 'gone asks');
    const second = () => locks.lock('account:42', { maxWaiters: 1, wait: '1m' });
    await expect(second()).rejects.toMatchObject({ reason: 'too-many-waiters' });
    await failureOf(gone);

    const waiting = second();
    await held.unlock();
    await (await waiting).unlock();
    expect(ran).toEqual([]);
  });

  it('a client that goes while it waits for another process stops asking the store', async () => {
    await held.unlock();
    await store.acquire(OTHER);
    const gone = await send('42/gone', 'gone asks');
    await failureOf(gone);

    await store.release(OTHER);
    expect(await statusOf(await send('42/next', 'next asks'))).toBe(201);
    expect(ran).toEqual(['next']);
  });

  it.each([false, true])(
    'a client that goes while the store is asked, after a first wait, waits no more (with events: %j)',
    async (told) => {
      const types: string[] = [];
      if (told) locks.events.subscribe(({ type }) => types.push(type));
      const gone = await send('42/gone', 'gone asks');
      store.answers = deferred();
      const asked = once(events, 'the store is asked');
      void held.token; // A token that was shown is not handed off.
      await held.unlock();
      await asked;
      await store.acquire(OTHER);
      await leave(gone);

      const failed = once(events, 'gone failed');
      store.answers.resolve();
      store.answers = undefined;
      expect(await failed).toEqual([expect.objectContaining({ status: 499 })]);
      expect(types).toEqual(told ? ['queued', 'waited', 'aborted'] : []);
      await store.release(OTHER);
      expect(ran).toEqual([]);
    },
  );

  it("a client that goes while it waits stops waiting although the app's own APP_GUARD takes its time", async () => {
    await restart({}, [{ provide: APP_GUARD, useClass: SlowGuard }]);
    goOn.resolve();
    const gone = await send('42/gone', 'gone asks');
    expect(await failureOf(gone)).toMatchObject({ status: 499 });
    expect(ran).toEqual([]);
  });

  it('a client that goes before its handler asks for the lock does not wait at all', async () => {
    const gone = await send('guarded/42/gone', 'the guard is asked');
    await leave(gone);

    expect(await failureLater()).toMatchObject({ status: 499 });
    expect(ran).toEqual([]);
  });

  it("a client that goes while the handler's body runs leaves it running to its end, with the lock held", async () => {
    await held.unlock();
    const gone = await send('42/slow', 'slow is inside');
    await leave(gone);

    expect(await store.isLocked('account:42')).toBe(true);
    const next = await send('42/next', 'next asks');
    const answered = statusOf(next);
    goOn.resolve();
    expect(await answered).toBe(201);
    expect(ran).toEqual(['slow', 'next']);
  });

  it.each(['settle', 'settle-in-request'])(
    'a client that goes does not end waits inside a lock: siblings still take turns (%s)',
    async (path) => {
      await held.unlock();
      const gone = await send(`${path}/42/all`, 'gone asks');
      await leave(gone);
      const next = await send('42/next', 'next asks');
      const answered = statusOf(next);
      expect(ran).toEqual([]);
      goOn.resolve();
      expect(await answered).toBe(201);
      expect(ran).toEqual(['slow', 'gone', 'next']);
    },
  );

  it('a client that goes does not end the wait for a second lock inside the first', async () => {
    const gone = await send('pay/42/all', 'gone asks');
    await leave(gone);
    const inside = once(events, 'gone is inside');
    await held.unlock();
    await inside;
  });

  it.each(['room', 'tariff'])('a client that goes ends its wait inside a lock that others share: %s', async (path) => {
    const gone = await send(`${path}/42/all`, 'gone asks');
    expect(await failureOf(gone)).toMatchObject({ status: 499 });
    expect(ran).toEqual([]);
  });

  it('a client that goes ends the waits of work that its stream has left', async () => {
    const gone = await send('feed/42', 'gone asks', false, 'GET');
    expect(await failureOf(gone)).toMatchObject({ status: 499 });
    expect(await locks.isLocked('feed:42')).toBe(false);
    expect(ran).toEqual([]);
  });

  it('a client that goes does not end the wait of what its work has started inside a lock, and not awaited', async () => {
    const gone = await send('paid/42/all', 'gone asks');
    await leave(gone);
    const paid = once(events, 'paid');
    goOn.resolve();
    await paid;
    await turn();
    const inside = once(events, 'gone is inside');
    await held.unlock();
    await inside;
  });

  it('a client that goes does not end the wait of what locked work has started as its last step', async () => {
    await held.unlock();
    await store.acquire(OTHER);
    const gone = await send('paid-at-last/42/all', 'paid');
    await leave(gone);
    await turn();
    const inside = once(events, 'gone is inside');
    await store.release(OTHER);
    await inside;
    goOn.resolve();
  });

  it('a client that goes does not end the wait of what a stream has started, and was read to its end', async () => {
    await held.unlock();
    await store.acquire(OTHER);
    events.once('all', () => (store.answers = deferred()));
    const gone = await send('report/42/all', 'paid');
    await leave(gone);
    store.answers!.resolve();
    store.answers = undefined;
    await turn();
    const inside = once(events, 'gone is inside');
    await store.release(OTHER);
    await inside;
    goOn.resolve();
  });

  it('a client that goes does not end waits of work that a step of its stream has begun', async () => {
    const gone = await send('import/42', 'gone asks', false, 'GET');
    await leave(gone);
    await turn();
    const paid = once(events, 'paid');
    await held.unlock();
    await paid;
    expect(ran).toEqual(['gone']);
  });

  it('a client that goes ends its wait in the lock that a middleware holds around its request', async () => {
    await restart({}, [], [oneAtATime('*path')]);
    const gone = await send('42/gone', 'gone asks');
    expect(await locks.isLocked('user:7')).toBe(true);
    expect(await failureOf(gone)).toMatchObject({ status: 499 });
    expect(ran).toEqual([]);
  });

  it('a client that goes after a first wait ends the second', async () => {
    const gone = await send('twice/42/all', 'first asks');
    const between = once(events, 'between');
    await held.unlock();
    await between;
    await leave(gone);
    held = await locks.lock('account:42');
    expect(await failureLater()).toMatchObject({ status: 499 });
    expect(ran).toEqual(['first']);
  });

  it('a client that goes between two locks of its request does not wait for the second', async () => {
    const gone = await send('second/42/all', 'the interceptor is asked');
    await leave(gone);
    expect(await failureLater()).toMatchObject({ status: 499 });
    expect(ran).toEqual([]);
  });

  it('a client that goes before its request asks for the lock is not kept in memory', async () => {
    const gone = await send('guarded-request/42/all', 'the guard is asked');
    await leave(gone);
    const listeners = connection.listenerCount('close');
    expect(await failureLater()).toMatchObject({ status: 499 });
    expect(connection.listenerCount('close')).toBe(listeners);
    expect(ran).toEqual([]);
  });

  it('a client that goes with its answer does not end the wait of work that the handler left running', async () => {
    const left = once(events, 'a client has left');
    expect(await statusOf(await send('later/42/late', 'late asks'))).toBe(202);
    await left;

    const inside = once(events, 'late is inside');
    await held.unlock();
    await inside;
  });

  it('a client that goes does not end the wait of others, also on a connection that has served before', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect(await statusOf(await send('43/first', 'first asks', agent))).toBe(201);
    const second = await send('42/second', 'second asks', agent);
    expect(second.reusedSocket).toBe(true);

    const answered = statusOf(second);
    await held.unlock();
    expect(await answered).toBe(201);
    agent.destroy();
    expect(ran).toEqual(['first', 'second']);
  });

  it('a client that goes before its Observable is read does not keep the lock for a lease', async () => {
    await held.unlock();
    const gone = await send('history/42/gone', 'gone is inside');
    await leave(gone);
    expect(await store.isLocked('account:42')).toBe(true);
    goOn.resolve();
    await until(async () => !(await store.isLocked('account:42')));
  });

  it('a client that goes does not end its wait with http: false', async () => {
    await restart({ http: false });
    const gone = await send('42/gone', 'gone asks');
    await leave(gone);

    const inside = once(events, 'gone is inside');
    await held.unlock();
    await inside;
  });
});
