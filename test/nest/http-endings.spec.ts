import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  Inject,
  type INestApplication,
  type NestInterceptor,
  Param,
  Query,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { type Lock, LockService, type LockTimeoutError, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { EventEmitter, once } from 'node:events';
import { PassThrough } from 'node:stream';
import { merge, type Observable, Subject } from 'rxjs';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';
import { type SendRequest, sendHttp1, sendHttp2 } from '../support/http/http-clients.js';
import { azure, lambda } from '../support/http/serverless.js';
import { type NewAdapter, startApp } from './http-app.js';

const PLATFORMS: [name: string, adapter: NewAdapter, send: SendRequest][] = [
  ['Express', () => new ExpressAdapter(), sendHttp1],
  ['Fastify', () => new FastifyAdapter(), sendHttp1],
  ['Fastify with HTTP/2', () => new FastifyAdapter({ http2: true }), sendHttp2('request')],
  ['Fastify with HTTP/2, whose connections end', () => new FastifyAdapter({ http2: true }), sendHttp2('connection')],
];
const TABLE = PLATFORMS.flatMap(([platform, adapter, send]) =>
  (['call', 'request'] as const).map((scope) => ({ platform, adapter, send, scope })),
);

/** The server says `inside`. */
const events = new EventEmitter();
const ran: string[] = [];
/** What the handler waits for, and what it sends. */
let goOn: Deferred;
let file: PassThrough;
let tooLate: Subject<never>;
/** What the handler starts. */
let mail: Promise<void>;

/** As `timeout()`, at the moment that the test chooses. */
class Impatient implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return merge(next.handle(), tooLate);
  }
}

const KEY = 'order:7';
@Controller()
class Orders {
  @Get('call/json')
  @WithLock(KEY)
  async jsonInCall(@Query('fails') fails?: string) {
    return this.#json(fails);
  }

  @Get('request/json')
  @WithLock(KEY, { scope: 'request' })
  async jsonInRequest(@Query('fails') fails?: string) {
    return this.#json(fails);
  }

  @Get('call/file')
  @WithLock(KEY)
  async fileInCall() {
    return new StreamableFile(file);
  }

  @Get('request/file')
  @WithLock(KEY, { scope: 'request' })
  fileInRequest() {
    return new StreamableFile(file);
  }

  async #json(fails?: string) {
    events.emit('inside');
    await goOn.promise;
    ran.push('body');
    if (fails) throw new HttpException('no', 418);
    return { id: 7 };
  }
}

class Mails {
  @WithLock(KEY, { wait: '1m' })
  async send() {
    ran.push('sent');
  }
}

/** Answers before what it has started has its lock. */
@Controller('start')
class Starter {
  @Inject() readonly mails!: Mails;

  @Get('mail')
  start() {
    mail = this.mails.send();
    return 'started';
  }
}

/** Whose interceptors stand around the lock. */
@Controller('impatient')
@UseInterceptors(Impatient)
class ImpatientOrders {
  @Get(':id')
  @WithLock(KEY, { scope: 'request' })
  async json(@Param('id') id: string) {
    ran.push('body');
    return { id };
  }
}

describe.each(TABLE)("on $platform, a handler's lock with scope: '$scope'", ({ adapter, send, scope }) => {
  let app: INestApplication;
  let locks: LockService;

  beforeEach(async () => {
    goOn = deferred();
    file = new PassThrough();
    tooLate = new Subject();
    ran.length = 0;
    app = await startApp(adapter, {
      imports: [LockTestingModule.forRoot({ wait: '1m' })],
      controllers: [Orders, ImpatientOrders],
    });
    locks = app.get(LockService);
  });

  afterEach(async () => {
    events.removeAllListeners();
    goOn.resolve();
    file.end();
    await app.close();
  });

  const isFree = async () => !(await locks.isLocked(KEY));
  const somebodyWaits = async () =>
    (await locks.lock(KEY, { maxWaiters: 1, wait: 1 }).catch(({ reason }: LockTimeoutError) => reason)) ===
    'too-many-waiters';
  const sendTo = (path: string, method = 'GET') => {
    const { port } = (app.getHttpServer() as { address(): { port: number } }).address();
    return send(port, method, `/${path}`);
  };
  const path = (rest: string) => `${scope}/${rest}`;

  /** Waits for the lock of another caller. */
  async function waiting(path: string, method?: string) {
    const held = await locks.lock(KEY);
    const sent = sendTo(path, method);
    await until(somebodyWaits);
    return { held, sent };
  }

  /** Nobody waits any more, and nobody comes in when the key is free. */
  async function nobodyCameIn(held: Lock) {
    await until(async () => !(await somebodyWaits()));
    await held.unlock();
    await until(isFree);
    const next = await locks.lock(KEY);
    await next.unlock();
    await turn();
    expect([ran, await isFree()]).toEqual([[], true]);
  }

  it('the lock of a handler is free after the answer, and the next request enters', async () => {
    goOn.resolve();
    for (let number = 0; number < 3; number++) expect(await sendTo(path('json')).status).toBe(200);
    await until(isFree);
  });

  it('the lock of a handler is free after an error', async () => {
    goOn.resolve();
    expect(await sendTo(path('json?fails=yes')).status).toBe(418);
    await until(isFree);
  });

  it('the lock of a handler is free after a file', async () => {
    file.end('whole');
    const sent = sendTo(path('file'));
    await sent.begun;
    await sent.ended;
    await until(isFree);
  });

  it('the lock of a handler is free when its client goes while a file is sent', async () => {
    file.write('half');
    const sent = sendTo(path('file'));
    await sent.begun;
    expect(await isFree()).toBe(scope === 'call');
    sent.cancel();
    await until(isFree);
  });

  it.each(['GET', 'HEAD'])(
    'a handler stops waiting for its lock when the client of a %s goes, and its body does not run',
    async (method) => {
      const { held, sent } = await waiting(path('json'), method);
      sent.cancel();
      await sent.ended;
      await nobodyCameIn(held);
    },
  );

  it.each(['GET', 'HEAD'])(
    'the lock of a handler is held until the body has ended when the client of a %s goes, and free then',
    async (method) => {
      const inside = once(events, 'inside');
      const sent = sendTo(path('json'), method);
      await inside;
      sent.cancel();
      await sent.ended;
      await turn();
      expect(await isFree()).toBe(false);
      goOn.resolve();
      await until(isFree);
      expect(ran).toEqual(['body']);
    },
  );

  if (scope === 'request') {
    it('a handler stops waiting for its lock when an interceptor has answered, and its body does not run', async () => {
      const { held, sent } = await waiting('impatient/7');
      tooLate.error(new HttpException('too late', 408));
      expect(await sent.status).toBe(408);
      await nobodyCameIn(held);
    });
  }
});

describe('on Express behind a serverless adapter', () => {
  let app: INestApplication;

  beforeEach(async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot({ wait: 0 })],
      controllers: [Orders, Starter],
      providers: [Mails],
    }).compile();
    app = await module.createNestApplication(new ExpressAdapter(), { logger: false }).init();
  });

  afterEach(() => app.close());

  it.each(['call', 'request'])("a lock with scope: '%s' is free for the next serverless invocation", async (scope) => {
    const locks = app.get(LockService);
    const invoke = lambda(app);
    goOn = deferred();
    goOn.resolve();
    for (const [path, status] of [
      ['json', 200],
      ['json', 200],
      ['json?fails=yes', 418],
      ['file', 200],
      ['json', 200],
    ] as const) {
      file = new PassThrough();
      file.end('whole');
      expect([path, (await invoke(`/${scope}/${path}`)).status]).toEqual([path, status]);
      expect([path, await locks.isLocked(KEY)]).toEqual([path, false]);
    }
  });

  it.each([
    ['AWS Lambda', lambda],
    ['Azure Functions', azure],
  ])('what a handler has started waits on after its answer, on %s', async (_name, adapter) => {
    ran.length = 0;
    const held = await app.get(LockService).lock(KEY);
    expect((await adapter(app)('/start/mail')).body).toBe('started');
    await held.unlock();
    await mail;
    expect(ran).toEqual(['sent']);
  });
});
