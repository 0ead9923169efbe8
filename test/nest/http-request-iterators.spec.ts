import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  Get,
  type INestApplication,
  type NestInterceptor,
  Param,
  UseInterceptors,
} from '@nestjs/common';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { type EventEmitter, once } from 'node:events';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { from, map, switchMap } from 'rxjs';
import { type Deferred, deferred, turn, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

jest.setTimeout(30_000);

const KEY = 'export:7';
const KINDS = ['generator', 'promised', 'passed-on', 'ignore', 'by-hand', 'opened', 'below'];

let locks: LockService;
/** Body and end of the iterator go on when the test says so. */
let goOn: Deferred;
let mayEnd: Deferred;
const seen: string[] = [];
let inside = 0;

/** Another caller is not nested in the request. */
const outside = AsyncLocalStorage.snapshot();

function note(step: string): void {
  const current = locks.current(KEY);
  seen.push(`${step}, ${current?.isHeld ? 'inside' : 'outside'}`);
}

async function* rows(): AsyncGenerator<string> {
  try {
    note('first');
    await locks.withLock(KEY, () => undefined, { wait: 0 });
    yield 'first\n';
    await goOn.promise;
    note('second');
    yield 'second\n';
  } finally {
    await mayEnd.promise;
    note('end');
  }
}

/** Its `next()` never settles, and its `return()` does not change that. */
function stuckRows(): AsyncIterableIterator<string> {
  return {
    next: () => {
      note('first');
      return new Promise(() => undefined);
    },
    return: async () => {
      note('end');
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Fails while it reads, as a `Readable` that is destroyed with an error. */
class FailsAtOnce implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler<AsyncGenerator<string>>) {
    return next.handle().pipe(
      switchMap((read) => {
        void read.next();
        return read.throw(new Error('of the reader'));
      }),
    );
  }
}

/** Reads one value, and leaves. */
class OneRow implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler<AsyncGenerator<string>>) {
    return next
      .handle()
      .pipe(
        switchMap((read) =>
          from(read.next()).pipe(
            switchMap(({ value }) => from(read.return(undefined)).pipe(map(() => ({ value: value as string })))),
          ),
        ),
      );
  }
}

const SCOPE = { scope: 'request', wait: 0 } as const;

@Controller()
class Exports {
  @Get('generator/:id')
  @WithLock('export:<params.id>', SCOPE)
  async *generator(@Param('id') _id: string) {
    yield* rows();
  }

  @Get('promised/:id')
  @WithLock('export:<params.id>', SCOPE)
  async promised() {
    return rows();
  }

  @Get('passed-on/:id')
  @WithLock('export:<params.id>', SCOPE)
  passedOn() {
    return rows();
  }

  @Get('ignore/:id')
  @WithLock('export:<params.id>', { ...SCOPE, onLost: 'ignore' })
  async *ignoring() {
    yield* rows();
  }

  /** Its `return()` does not wait for the `next()` that still runs. */
  @Get('by-hand/:id')
  @WithLock('export:<params.id>', SCOPE)
  byHand() {
    const source = rows();
    let left = false;
    const byHand: AsyncIterableIterator<string> = {
      next: async () => {
        const result = await source.next();
        if (left) await source.return(undefined);
        return result;
      },
      return: async () => {
        left = true;
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
    return byHand;
  }

  /** It can be read only once it has been opened. */
  @Get('opened/:id')
  @WithLock('export:<params.id>', SCOPE)
  opened() {
    return {
      next: () => Promise.reject(new Error('not opened')),
      [Symbol.asyncIterator]: () => rows(),
    };
  }

  @Get('stuck/:id')
  @WithLock('export:<params.id>', { ...SCOPE, lease: '500ms' })
  stuck() {
    return stuckRows();
  }

  @UseInterceptors(FailsAtOnce)
  @Get('failed/:id')
  @WithLock('export:<params.id>', { ...SCOPE, lease: '500ms' })
  failed() {
    return stuckRows();
  }

  @Get('counted/:id')
  @WithLock('export:<params.id>', { scope: 'request', wait: '10s' })
  async *counted() {
    inside++;
    try {
      yield `${inside}\n`;
      await turn();
      yield `${inside}\n`;
      await turn();
    } finally {
      await turn();
      inside--;
    }
  }

  @Get('giving-up/:id')
  @WithLock('export:<params.id>', SCOPE)
  async *givingUp() {
    const { signal } = locks.current(KEY)!;
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('given up'))));
    yield '';
  }

  /** Nest itself must call what the lower lock is around. */
  @Get('below/:id')
  @WithLock('tenant:<id>')
  @WithLock('export:<params.id>', SCOPE)
  async *below(@Param('id') _id: string) {
    yield* rows();
  }

  @Get('one/:id')
  @UseInterceptors(OneRow)
  @WithLock('export:<params.id>', SCOPE)
  async *one() {
    yield* rows();
  }
}

describe.each(PLATFORMS)("on %s, a lock with scope: 'request' around an async iterator", (_platform, adapter) => {
  let app: INestApplication;
  /** The latest, as the server sees it. */
  let connection: EventEmitter;

  beforeEach(async () => {
    goOn = deferred();
    mayEnd = deferred();
    seen.length = inside = 0;
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Exports] });
    locks = app.get(LockService);
    (app.getHttpServer() as EventEmitter).on('connection', (socket: EventEmitter) => (connection = socket));
  });

  afterEach(async () => {
    goOn.resolve();
    mayEnd.resolve();
    await app.close();
  });

  const isFree = async () => !(await locks.isLocked(KEY));

  function send(path: string): ClientRequest {
    const { port } = (app.getHttpServer() as { address(): { port: number } }).address();
    return get({ port, path: `/${path}`, agent: false }).on('error', () => undefined);
  }

  async function responseOf(sent: ClientRequest): Promise<IncomingMessage> {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return response.on('error', () => undefined);
  }

  async function textOf(response: IncomingMessage): Promise<string> {
    let text = '';
    response.on('data', (chunk) => (text += String(chunk)));
    await new Promise((resolve) => response.once('close', resolve));
    return text;
  }

  /** Goes away; returns when the server knows it. */
  async function abort(sent: ClientRequest): Promise<void> {
    const gone = new Promise((resolve) => connection.once('close', resolve));
    sent.destroy();
    await gone;
    await turn();
  }

  it.each(KINDS)('an async iterator keeps its lock while the body runs, in its context (%s)', async (kind) => {
    const response = await responseOf(send(`${kind}/7`));
    goOn.resolve();
    expect(await isFree()).toBe(false);
    mayEnd.resolve();
    expect(await textOf(response)).toBe('first\nsecond\n');
    expect(seen).toEqual(['first, inside', 'second, inside', 'end, inside']);
    await until(isFree);
  });

  it.each(KINDS)('an async iterator keeps its lock until the body has ended (%s)', async (kind) => {
    const sent = send(`${kind}/7`);
    const response = await responseOf(sent);
    await once(response, 'data');
    await abort(sent);
    expect(await isFree()).toBe(false);
    goOn.resolve();
    await turn();
    expect(await isFree()).toBe(false);
    mayEnd.resolve();
    await until(isFree);
    expect(seen).toEqual(['first, inside', 'second, inside', 'end, inside']);
  });

  it('an async iterator that never goes on keeps its lock for one lease after its client has gone', async () => {
    const sent = send('stuck/7');
    await until(() => seen.length === 1);
    await abort(sent);
    expect(await isFree()).toBe(false);
    await until(isFree);
    expect(seen).toEqual(['first, inside', 'end, inside']);
  });

  it('an async iterator that never goes on keeps its lock for one lease after its reader has failed', async () => {
    expect((await responseOf(send('failed/7'))).statusCode).toBe(500);
    expect(await isFree()).toBe(false);
    await until(isFree);
    expect(seen).toEqual(['first, inside', 'end, inside']);
  });

  it('an async iterator lets no second request in after a client has gone', async () => {
    const most: number[] = [];
    for (let request = 0; request < 16; request++) {
      const sent = send('counted/7');
      await once(await responseOf(sent), 'data');
      most.push(inside);
      sent.destroy();
    }
    await until(isFree);
    expect([new Set(most), inside]).toEqual([new Set([1]), 0]);
  });

  it('a reader hears at the next value that the lock of its async iterator is lost', async () => {
    const response = await responseOf(send('generator/7'));
    await once(response, 'data');
    await outside(() => locks.forceUnlock(KEY));
    await using other = await outside(() => locks.lock(KEY));
    goOn.resolve();
    mayEnd.resolve();
    const [text] = await Promise.all([textOf(response), until(() => seen.length === 3)]);
    expect([text, response.complete]).toEqual(['', false]);
    other.assertHeld();
  });

  it('an async iterator that gives up because its lock is lost is answered with 503', async () => {
    const sent = send('giving-up/7');
    await until(async () => !(await isFree()));
    await outside(() => locks.forceUnlock(KEY));
    const response = await responseOf(sent);
    expect([response.statusCode, await textOf(response)]).toEqual([503, expect.stringContaining('LOCK_LOST')]);
  });

  it("an async iterator is read to its end though the lock is lost, with onLost: 'ignore'", async () => {
    const response = await responseOf(send('ignore/7'));
    await outside(() => locks.forceUnlock(KEY));
    goOn.resolve();
    mayEnd.resolve();
    expect([await textOf(response), response.complete]).toEqual(['first\nsecond\n', true]);
  });

  it('an async iterator releases the lock of its request when a reader has left it before its end', async () => {
    mayEnd.resolve();
    const response = await responseOf(send('one/7'));
    expect(await textOf(response)).toBe('{"value":"first\\n"}');
    expect(seen).toEqual(['first, inside', 'end, inside']);
    await until(isFree);
  });
});
