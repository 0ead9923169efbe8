import { EventEmitter, on } from 'node:events';
import { Readable } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';

/** What the methods return. */
let value: unknown;

@Injectable()
class Rows {
  @WithLock('rows')
  async promised() {
    return value;
  }

  @WithLock('rows')
  passedOn(): AsyncIterable<unknown> & Promise<unknown> {
    return value as AsyncIterable<unknown> & Promise<unknown>;
  }
}

let module: TestingModule;
let rows: Rows;

beforeEach(async () => {
  module = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [Rows] }).compile();
  rows = module.get(Rows);
});

afterEach(async () => {
  await module.close();
  jest.restoreAllMocks();
});

const isLocked = () => module.get(LockService).isLocked('rows');

/** Its `next()` gives rows, and null at the end, as that of MongoDB. */
class RowCursor {
  calls: string[] = [];
  row = 0;

  async next(): Promise<{ row: number } | null> {
    this.calls.push('next');
    return this.row < 2 ? { row: ++this.row } : null;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<{ row: number }> {
    this.calls.push('iterator');
    for (let row = await this.next(); row; row = await this.next()) yield row;
  }

  async close() {}
}

/** Makes an iterator for each that reads it, as that of Mongoose. */
class ArrowCursor extends RowCursor {
  override [Symbol.asyncIterator] = () => super[Symbol.asyncIterator]();
}

/** The iterator of a cursor whose class says nothing of it. */
class WrappedCursor extends RowCursor {
  override [Symbol.asyncIterator]() {
    return super[Symbol.asyncIterator]();
  }
}

/** As older targets have it: its iterator is made by a function that is no generator. */
class LoweredCursor extends RowCursor {
  override [Symbol.asyncIterator] = function (this: RowCursor) {
    return RowCursor.prototype[Symbol.asyncIterator].call(this);
  };
}

/** A Node stream whose `next()` gives rows until it is read as an iterator, as that of Mongoose. */
class StreamCursor extends Readable {
  readonly calls: string[] = [];
  #row = 0;
  #asIterator = false;

  constructor() {
    super({ objectMode: true, read: () => undefined });
  }

  async next(): Promise<unknown> {
    this.calls.push('next');
    const value = this.#row < 2 ? { row: ++this.#row } : null;
    return this.#asIterator ? { done: value === null, value } : value;
  }

  override [Symbol.asyncIterator](): NodeJS.AsyncIterator<unknown> {
    this.calls.push('iterator');
    this.#asIterator = true;
    return this as unknown as NodeJS.AsyncIterator<unknown>;
  }

  async close() {}
}

/** Nothing but the one method tells that this is a cursor. */
function cursorWith(name: string): RowCursor {
  const cursor = new RowCursor();
  return Object.assign(cursor, { close: undefined, [name]: () => cursor.calls.push(name) });
}

const CURSORS: [string, () => RowCursor | StreamCursor][] = [
  ['a cursor', () => new RowCursor()],
  ['a cursor whose iterator is made by an arrow function', () => new ArrowCursor()],
  ['a cursor whose iterator is made by a base class', () => new WrappedCursor()],
  ['a cursor of an older target', () => new LoweredCursor()],
  ['a cursor that is a Node stream', () => new StreamCursor()],
  ...['hasNext', 'toArray', 'forEach', 'eachAsync'].map((name): [string, () => RowCursor] => [
    `a cursor with ${name}()`,
    () => cursorWith(name),
  ]),
  ['a cursor in a Proxy', () => new Proxy(new RowCursor(), {})],
];

describe.each(CURSORS)('%s with a next() that gives rows', (_kind, make) => {
  let cursor: RowCursor | StreamCursor;

  beforeEach(() => {
    value = cursor = make();
    jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
  });

  it('a cursor with a next() that gives rows comes out as it is, and nothing of it is called', async () => {
    expect((await rows.promised()) === cursor).toBe(true);
    expect([await isLocked(), cursor.calls]).toEqual([false, []]);
  });

  it('a cursor with a next() that gives rows is read to its end by a loop over the call', async () => {
    const read = [];
    for await (const row of rows.passedOn()) read.push(row);
    expect(read).toEqual([{ row: 1 }, { row: 2 }]);
  });
});

it('a web stream that has a next(), as those of LangChain, comes out as it is', async () => {
  class IterableStream extends ReadableStream<string> {
    async next(): Promise<IteratorResult<string>> {
      return { done: true, value: undefined };
    }

    override [Symbol.asyncIterator](): ReturnType<ReadableStream<string>[typeof Symbol.asyncIterator]> & this {
      return this as never;
    }
  }
  jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
  value = new IterableStream();
  expect((await rows.promised()) === value).toBe(true);
  expect(await isLocked()).toBe(false);
});

it('the log says, once for each method, that a cursor is read without the lock', async () => {
  class Others extends Rows {
    @WithLock('rows')
    async cursor() {
      return new RowCursor();
    }
  }
  const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
  const others = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    providers: [Others],
  }).compile();
  for (let call = 0; call < 2; call++) await others.get(Others).cursor();
  expect(
    warn.mock.calls
      .map(([text]) => String(text))
      .filter((text) => text.startsWith('Others.cursor() returned a stream')),
  ).toHaveLength(1);
  await others.close();
});

/** As graphql-subscriptions has it. */
class Messages implements AsyncIterableIterator<number> {
  given = 0;

  async next(): Promise<IteratorResult<number, undefined>> {
    return this.given++ === 0 ? { done: false, value: 1 } : { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<number, undefined>> {
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

async function* generated() {
  yield 1;
}

function endedEvents() {
  const emitter = new EventEmitter();
  const events = on(emitter, 'none', { close: ['end'] });
  emitter.emit('end');
  return events;
}

type Maker = (iterator: object) => (this: unknown) => unknown;

/** How compilers for targets before ES2018, coverage tools and people write that an iterator is its own. */
const OWN: [string, Maker][] = [
  ['an arrow function', (iterator) => () => iterator],
  ['an arrow function with a body', (iterator) => () => { return iterator; }], // prettier-ignore
  ['a function that returns this', () => function () { return this; }], // prettier-ignore
  ['a function that returns a variable', (iterator) => function () { return iterator; }], // prettier-ignore
  ['a function that coverage is counted of', () => { const cov_1a = { f: [0], s: [0] }; return function () { cov_1a.f[0]!++; cov_1a.s[0]!++; return this; }; }], // prettier-ignore
  ['an arrow function that coverage is counted of', (iterator) => { const cov_1a = () => ({ f: [0], s: [0] }); return () => { cov_1a().f[0]!++; cov_1a().s[0]!++; return iterator; }; }], // prettier-ignore
];

/** An `async *` method for an older target, with what else is on its prototype. */
function lowered(own: Maker, inherits: object = {}): object {
  const inner = generated();
  const iterator = Object.create(inherits) as Record<PropertyKey, unknown>;
  for (const name of ['next', 'throw', 'return'] as const) iterator[name] = (sent: never) => inner[name](sent);
  return Object.assign(iterator, { [Symbol.asyncIterator]: own(iterator) });
}

const HELPERS = { toArray: async () => [], forEach: async () => undefined };

const ITERATORS: [string, () => unknown][] = [
  ['an async generator', generated],
  ['a class', () => new Messages()],
  ['a class, in a Proxy', () => new Proxy(new Messages(), {})],
  ['an object written out', () => ({ next: async () => ({ done: true, value: undefined }), [Symbol.asyncIterator]() { return this; } })], // prettier-ignore
  ['a function, as older compilers write it', () => Object.assign(Object.create(null) as object, { next: async () => ({ done: true }), [Symbol.asyncIterator]: function (this: unknown) { return this; } })], // prettier-ignore
  ['a Node stream', () => Readable.from([1])[Symbol.asyncIterator]()],
  ['a web stream', () => ReadableStream.from([1]).values()],
  ['events.on()', endedEvents],
  ['a class that makes another in a way of its own', () => lowered((iterator) => function () { return Object.create(iterator) as unknown; })], // prettier-ignore
  ['a class that can be closed', () => Object.assign(new Messages(), { close: () => undefined })],
  ['an async generator with the helpers of a polyfill', () => Object.assign(generated(), HELPERS)],
  ...OWN.map(([kind, own]): [string, () => unknown] => [`${kind}`, () => lowered(own)]),
  ...OWN.map(([kind, own]): [string, () => unknown] => [
    `${kind}, with the helpers of a polyfill`,
    () => lowered(own, HELPERS),
  ]),
  ['another locked method', () => rows.promised()],
];

it.each(ITERATORS)('an iterator of %s keeps the lock to its end', async (kind, make) => {
  if (kind === 'another locked method') {
    value = generated();
    const inner = await rows.promised();
    await module.get(LockService).forceUnlock('rows');
    value = inner;
  } else value = make();
  const held = (await rows.promised()) as AsyncIterator<unknown>;
  expect(await isLocked()).toBe(true);
  while (!(await held.next().catch(() => ({ done: true }))).done);
  expect(await isLocked()).toBe(false);
});

/** Gives values only once it has been opened, by each reader anew. */
class Opened implements AsyncIterable<number> {
  readonly opened: object[] = [];

  next(): Promise<IteratorResult<number>> {
    return Promise.reject(new Error('not opened'));
  }

  [Symbol.asyncIterator](): AsyncIterator<number> {
    const iterator = generated();
    this.opened.push(iterator);
    return iterator;
  }
}

it('an iterator is opened once before its first value, and what that returns is read', async () => {
  const source = (value = new Opened());
  const held = (await rows.promised()) as AsyncGenerator<number>;
  expect(source.opened).toHaveLength(0);
  expect([await held.next(), await isLocked()]).toEqual([{ done: false, value: 1 }, true]);
  expect([await held.next(), await isLocked()]).toEqual([{ done: true, value: undefined }, false]);
  expect(source.opened).toHaveLength(1);
});

it('an iterator that is left before its first value is not opened', async () => {
  const source = (value = new Opened());
  const held = (await rows.promised()) as AsyncGenerator<number>;
  expect(await held.return('left')).toEqual({ done: true, value: 'left' });
  expect([source.opened, await isLocked()]).toEqual([[], false]);
});

it('an iterator that cannot be opened fails at its first value, and releases the lock', async () => {
  const broken = new Error('broken');
  value = Object.assign(new Messages(), {
    [Symbol.asyncIterator]() {
      throw broken;
    },
  });
  const held = (await rows.promised()) as AsyncGenerator<number>;
  await expect(held.next()).rejects.toBe(broken);
  expect(await isLocked()).toBe(false);
});
