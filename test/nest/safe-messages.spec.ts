import { describe, expect, it } from '@jest/globals';
import { ConsoleLogger, type INestApplicationContext, Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  LockKeyError,
  LockLostError,
  type LockError,
  LockNotWiredError,
  LockOptionsError,
  LockService,
  LockTimeoutError,
  LockUnavailableError,
  WithLock,
} from 'nest-redis-lock';
import { LockTestingModule, TestLockService } from 'nest-redis-lock/testing';
import { hostname } from 'node:os';
import { inspect } from 'node:util';

const KEY = 'account:4711';
const HOLDER = `${hostname()}:${process.pid}`;

@Injectable()
class Accounts {
  @WithLock('account:<id>')
  async open(id: string | object) {
    return id;
  }
}

async function start(): Promise<INestApplicationContext> {
  const app = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot({ wait: 0, shutdownGrace: 0 })],
    providers: [Accounts],
  }).compile();
  return app.init();
}

const failure = (call: Promise<unknown>): Promise<LockError> =>
  call.then(
    () => Promise.reject(new Error('it worked')),
    (error: LockError) => error,
  );

type Calls = (app: INestApplicationContext, locks: LockService) => Promise<unknown>;

/** Each kind of error, how it comes about, and what its detail says. */
const ERRORS: [kind: new (...args: never[]) => LockError, come: Calls, detail: RegExp][] = [
  [
    LockTimeoutError,
    (app, locks) =>
      locks.withLock(KEY, () =>
        app
          .get(LockService)
          .lock('other', { wait: 0 })
          .then(() => locks.lock('other', { wait: 0 })),
      ),
    /lock "other": it is held \(holder .+\)/,
  ],
  [
    LockTimeoutError,
    async (app, locks) => [await locks.lock(KEY), await app.get(Accounts).open('4711')],
    /Could not take lock "account:4711".*: it is held \(holder .+\)\. Set "wait"/,
  ],
  [
    LockLostError,
    (_app, locks) => locks.withLock(KEY, () => locks.forceUnlock(KEY)),
    /Lost lock "account:4711".* after \d+ ms: somebody took it away/,
  ],
  [
    LockUnavailableError,
    (app) => (app.get(TestLockService).simulate({ down: true }), app.get(Accounts).open('4711')),
    /simulates a store that is down/,
  ],
  [
    LockKeyError,
    (app) => app.get(Accounts).open({ name: 'account:4711' }),
    /<id> in the lock key "account:<id>" of Accounts\.open\(\) is an object/,
  ],
  [LockKeyError, (_app, locks) => locks.lock(`${KEY}\uD800`), /half a surrogate pair.*account:4711/],
  [
    LockOptionsError,
    (_app, locks) => locks.withLock(KEY, () => locks.lock(KEY, { reentrant: false })),
    /nested in a call that holds lock "account:4711" already/,
  ],
  [
    LockOptionsError,
    (_app, locks) => locks.withLock(KEY, () => locks.lock([KEY, 'account:2'])),
    /asks for locks "account:2", "account:4711" together, inside calls that hold "account:4711" only/,
  ],
  [
    LockOptionsError,
    (_app, locks) => locks.withLock(KEY, () => locks.lock(KEY), { permits: 2 }),
    /asks for lock "account:4711" as the only holder/,
  ],
  [
    LockOptionsError,
    (_app, locks) => locks.withLock(KEY, () => locks.withLock(KEY, (lock) => lock.downgrade())),
    /The lock "account:4711" is nested in another call/,
  ],
  [
    LockOptionsError,
    (_app, locks) => locks.withLock(KEY, (lock) => lock.downgrade(), { permits: 2 }),
    /The lock "account:4711" is a permit of a semaphore/,
  ],
  [
    LockOptionsError,
    async (_app, locks) => [await locks.lock(KEY, { permits: 2 }), await locks.lock(KEY, { permits: 3 })],
    /those who hold lock "account:4711" now/,
  ],
  [LockNotWiredError, () => new Accounts().open('4711'), /Accounts\.open\(\) needs a lock/],
];

describe('What an error says', () => {
  it.each(ERRORS.map(([kind, ...rest]) => [kind.name, kind, ...rest] as const))(
    'an error names no key and no holder in the message of a %s; printing it tells all',
    async (_name, kind, come, detail) => {
      const app = await start();
      const error = await failure(come(app, app.get(LockService)));
      expect(error).toBeInstanceOf(kind);
      expect(error.message).not.toMatch(/4711|"other"|\(holder/);
      expect(error.message).not.toContain(HOLDER);
      expect(error.detail).toMatch(detail);
      expect(error.stack).toMatch(detail);
      expect(inspect(error)).toContain(error.detail);
      expect(String(error)).toBe(`${kind.name}: ${error.message}`);
      await app.close();
    },
  );

  it.each([LockTimeoutError, LockLostError, LockUnavailableError, LockKeyError])(
    'an error has its message in the response body of a %p',
    async (kind) => {
      const app = await start();
      const [, come] = ERRORS.find(([one]) => one === kind)!;
      const error = await failure(come(app, app.get(LockService)));
      expect(error.getResponse()).toMatchObject({ message: error.message });
      await app.close();
    },
  );

  it('an error is printed by the logger of Nest with key and holder', async () => {
    const lines: string[] = [];
    class Lines extends ConsoleLogger {
      protected override printMessages(messages: unknown[], ...rest: never[]) {
        lines.push(...messages.map((message) => this.stringifyMessage(message, 'error')));
        void rest;
      }
    }
    const app = await start();
    const locks = app.get(LockService);
    await locks.lock(KEY);
    const error = await failure(locks.lock(KEY));
    new Lines('App', { colors: false }).error(error);
    expect(lines.join('\n')).toContain(`Could not take lock "account:4711": it is held (holder ${HOLDER})`);
    await app.close();
  });

  it('an error has the place of the call below it, and its stack can be replaced, as of any error', async () => {
    const app = await start();
    const locks = app.get(LockService);
    await locks.lock(KEY);
    const error = await failure(locks.lock(KEY));
    const [first, second, ...frames] = error.stack!.split('\n');
    expect([first, second]).toEqual([
      'LockTimeoutError: Another request is working on this right now. Try again in a moment.',
      error.detail,
    ]);
    expect(frames.every((frame) => /^ {4}at /.test(frame))).toBe(true);
    expect(frames.join('\n')).toMatch(/LockService\..*safe-messages\.spec/s);
    error.stack = 'mine';
    expect(error.stack).toBe('mine');
    await app.close();
  });

  it('an error has its trace written when somebody reads it, as most are handled unread', async () => {
    const limit = Error.stackTraceLimit;
    const { prepareStackTrace } = Error as { prepareStackTrace?: unknown };
    let written = 0;
    Error.prepareStackTrace = (error) => {
      written++;
      return `${error.message}\n`;
    };
    try {
      const error = new LockUnavailableError('Redis at 127.0.0.1:6379 does not answer.');
      expect(written).toBe(0);
      expect(error.stack).toContain('does not answer');
      expect(written).toBe(1);
      expect(Error.stackTraceLimit).toBe(limit);
    } finally {
      Object.assign(Error, { prepareStackTrace });
    }
  });
});
