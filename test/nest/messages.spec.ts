import { describe, expect, it } from '@jest/globals';
import { LockKeyError, LockTimeoutError } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { lockNames } from '../../lib/errors/messages.js';
import { shown, shownError } from '../../lib/errors/messages.js';
import { lockService } from '../support/stores/lock-services.js';

const refuse = (): never => {
  throw new Error('nobody reads me');
};
const HOSTILE = new Proxy({}, { get: refuse, getPrototypeOf: refuse, has: refuse, ownKeys: refuse });
const revoked = Proxy.revocable({}, {});
revoked.revoke();

/** What a message may consist of: one line, without anything that a terminal takes for a command. */
const ONE_SHORT_LINE = /^[^\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]{0,300}$/u;

describe('messages with values of clients', () => {
  it.each<[string, unknown, string]>([
    [
      'a constructor of its own',
      JSON.parse('{"constructor":{"name":"x\\n[Nest] root logged in"}}'),
      'an object (Object)',
    ],
    ['a name that is no text', JSON.parse('{"constructor":{"name":{"toString":1,"valueOf":1}}}'), 'an object (Object)'],
    ['no prototype', Object.create(null), 'an object (without a class)'],
    [
      'a getter that throws',
      {
        get constructor() {
          return refuse();
        },
      },
      'an object (Object)',
    ],
    ['a class with a strange name', new (Object.defineProperty(class {}, 'name', { value: 'a\nb' }))(), 'an object'],
    ['a Proxy that refuses everything', HOSTILE, "an object that can't be read"],
    ['a Proxy that was revoked', revoked.proxy, "an object that can't be read"],
    ['a symbol with a line break', Symbol('a\nb'), 'Symbol(a\\nb)'],
    ['a class of its own', new Date(0), 'an object (Date)'],
    ['DEL, C1 and line separators', 'a\u007Fb\u0085c\u2028d', '"a\\u007fb\\u0085c\\u2028d"'],
    ['text that is read from right to left', 'a\u202Eb', '"a\\u202eb"'],
    ['an array', ['a'], 'an array'],
  ])('a value with %s is shown in a message on one line', (_what, value, text) => {
    expect(shown(value)).toBe(text);
  });

  it.each<[string, string]>([
    ['redis://:hunter2@10.0.0.1:6379/0', '"redis://…@10.0.0.1:6379/0"'],
    ['redis://bob:a hunter2@10.0.0.1', '"redis://…@10.0.0.1"'],
    ['redis://bob:a\nhunter2@10.0.0.1', '"redis://…@10.0.0.1"'],
    ['redis://bob@example.com:hunter2@10.0.0.1', '"redis://…@10.0.0.1"'],
    ['redis://:a?hunter2@10.0.0.1', '"redis://…"'],
    ['redis+sentinel://10.0.0.1/main?sentinelPassword=hunter2', '"redis+sentinel://…"'],
    ['redis://:hunter2@10.0.0.1,redis://:hunter2@10.0.0.2', '"redis://…@10.0.0.2"'],
    ['see redis://:hunter2@10.0.0.1', '"…@10.0.0.1"'],
    ['bob:hunter2@10.0.0.1:6379', '"…@10.0.0.1:6379"'],
    ['bob@example.com:a/hunter2@10.0.0.1', '"…@10.0.0.1"'],
    ['bob:hunter2://@10.0.0.1', '"…@10.0.0.1"'],
    ['tcp://10.0.0.1:6379', '"tcp://10.0.0.1:6379"'],
    ['alice@example.com', '"alice@example.com"'],
    ['account:4?', '"account:4?"'],
  ])('the text %j is shown without a user and a password', (text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  it.each<[string, unknown]>([
    ['a long text', 'x'.repeat(100_000)],
    ['a long number', 10n ** 10_000n],
    ['a long symbol', Symbol('x'.repeat(100_000))],
  ])('a value that is %s is cut in a message', (_what, value) => {
    expect(shown(value)).toMatch(ONE_SHORT_LINE);
  });

  it.each<[string, unknown]>([
    ['a line break', new Error('a\n[Nest] root logged in')],
    ['a long message', new Error('x'.repeat(100_000))],
    ['something that is no error', { message: 'a\nb' }],
    ['a message that throws', Object.defineProperty(new Error(), 'message', { get: refuse })],
    ['a Proxy that refuses everything', HOSTILE],
  ])('an error of foreign code with %s is shown on one short line', (_what, error) => {
    expect(shownError(error)).toMatch(ONE_SHORT_LINE);
  });

  it('a key with a line break is quoted, and of many keys some are named', async () => {
    const locks = lockService(new MemoryLockStore());
    const held = await locks.lock('a\nb\u001b[32m');
    const error: unknown = await locks.lock('a\nb\u001b[32m', { wait: 0 }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect((error as LockTimeoutError).detail).toContain('"a\\nb\\u001b[32m"');
    expect(lockNames(Array.from({ length: 100 }, (_, at) => `k${at}`))).toBe(
      'locks "k0", "k1", "k2", "k3", "k4" and 95 more',
    );
    await held.unlock();
    await locks.close();
  });
});

describe('lists of keys', () => {
  const keys = (count: number) => Array.from({ length: count }, (_, at) => `sku:${at}`);

  it('a list of keys that a client has sent may have 100 of them', async () => {
    const locks = lockService(new MemoryLockStore());
    await locks.withLock(keys(100), (lock) => expect(lock.keys).toHaveLength(100));
    await locks.close();
  });

  it('a list of keys that a client has sent is refused when it has more than 100, and locks nothing', async () => {
    const locks = lockService(new MemoryLockStore());
    const error: unknown = await locks.lock(keys(101)).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockKeyError);
    expect((error as LockKeyError).detail).toMatch(/at most 100 keys, this one names 101/);
    expect(await locks.isLocked('sku:0')).toBe(false);
    await locks.close();
  });

  it('a key that a list names again counts once', async () => {
    const locks = lockService(new MemoryLockStore());
    const named = Array.from({ length: 100 }, () => keys(100)).flat();
    await locks.withLock(named, (lock) => expect([...lock.keys].sort()).toEqual(keys(100).sort()));
    await locks.close();
  });

  it('a list that names more than 10,000 keys is refused, however many of them are the same', async () => {
    const locks = lockService(new MemoryLockStore());
    const error: unknown = await locks.lock(Array<string>(10_001).fill('sku:0')).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockKeyError);
    expect((error as LockKeyError).detail).toMatch(/at most 10000 keys, .* this one names 10001/);
    expect(await locks.isLocked('sku:0')).toBe(false);
    await locks.close();
  });
});
