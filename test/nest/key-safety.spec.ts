import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, UnauthorizedException } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { type AcquireCommand, LockKeyError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';

/** A store that notes what it is asked for. */
class StoreSpy extends MemoryLockStore {
  readonly asked: string[] = [];

  override acquire(command: AcquireCommand) {
    this.asked.push(...command.keys);
    return super.acquire(command);
  }
}

/** An array that iterates over something else than its positions. */
function iteratingOver(other: Iterable<string>, ...keys: string[]): string[] {
  class Keys extends Array<string> {
    override [Symbol.iterator]() {
      return other[Symbol.iterator]() as ArrayIterator<string>;
    }
  }
  return Keys.from(keys);
}

@Injectable()
class Accounts {
  ran = 0;

  constructor(private readonly locks: LockService) {}

  @WithLock('account:<id>')
  async byName(id?: unknown) {
    return this.key(id);
  }

  @WithLock('account:<dto.owner.id>')
  async byPath(dto?: unknown) {
    return this.key(dto);
  }

  @WithLock('account:<ids.0>')
  async byFirst(ids?: unknown) {
    return this.key(ids);
  }

  @WithLock(['account:<from>', 'account:<to>'])
  async several(from?: unknown, to?: unknown) {
    return this.key(from, to);
  }

  @WithLock(iteratingOver(['account:<from>'], 'account:<from>', 'account:<to>'))
  async strangeTemplates(from: string, to: string) {
    return this.key(from, to);
  }

  @WithLock('account:<id>')
  async withDefaultValue(id = 'everybody') {
    return this.key(id);
  }

  @WithLock('account:<a>:<b>')
  async pair(a: string, b: string) {
    return this.key(a, b);
  }

  @WithLock('account/<id>/of-<bank>')
  async otherSeparators(id: string, bank: string) {
    return this.key(id, bank);
  }

  @WithLock((keyOf: () => string) => keyOf())
  async byFunction(keyOf: () => string) {
    return this.key(keyOf);
  }

  private key(..._used: unknown[]): string {
    this.ran++;
    return this.locks.current()!.key;
  }
}

let module: TestingModule;
let accounts: Accounts;
let store: StoreSpy;

beforeAll(async () => {
  store = new StoreSpy();
  module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot({ store })],
    providers: [Accounts],
  }).compile();
  accounts = module.get(Accounts);
});

beforeEach(() => {
  store.asked.length = 0;
  accounts.ran = 0;
});

afterAll(() => module.close());

describe('keys in Unicode', () => {
  it('two keys are compared by their bytes in UTF-8, so a composed and a decomposed character differ', async () => {
    const [composed, decomposed] = ['é'.normalize('NFC'), 'é'.normalize('NFD')];
    await using held = await module.get(LockService).lock(`account:${composed}`);
    expect(await accounts.byName(decomposed)).toBe(`account:${decomposed}`);
    await expect(module.get(LockService).tryLock(`account:${composed}`)).resolves.toBeNull();
    held.assertHeld();
  });

  it('two keys differ when their values have different halves of a surrogate pair', async () => {
    expect(await accounts.byName('\uD83D')).toBe('account:%uD83D');
    expect(await accounts.byName('\uDC69')).toBe('account:%uDC69');
  });
});

describe('values in keys', () => {
  it.each([
    ['a colon', '1:x', 'account:1%3Ax'],
    ['a percent sign', '1%3Ax', 'account:1%253Ax'],
    ['braces, which would move the key to another cluster slot', '{1}', 'account:%7B1%7D'],
    ['white space that is no plain space', 'a\n\t\u3000', 'account:a%0A%09%E3%80%80'],
    ['control characters', 'a\0', 'account:a%00'],
    ['a no-break space', 'a\u00A0b', 'account:a%C2%A0b'],
  ])('a value with %s is escaped in a key', async (_what, value, key) => {
    expect(await accounts.byName(value)).toBe(key);
  });

  it.each(['a@b.example', '3f2c-77', 'a b', 'Ω≈ç√', '東京', '👩‍👩‍👧', '<id>'])(
    'a value such as %s stays readable in a key',
    async (value) => {
      expect(await accounts.byName(value)).toBe(`account:${value}`);
    },
  );

  it('a value can not forge the key of another template', async () => {
    expect(await accounts.byName('1:x')).not.toBe(await accounts.pair('1', 'x'));
    expect(await accounts.pair('1:2', '3')).not.toBe(await accounts.pair('1', '2:3'));
  });

  it('a value can not forge a separator that only this template uses', async () => {
    expect(await accounts.otherSeparators('1/of-2', '3')).toBe('account/1%2Fof%2D2/of-3');
    expect(await accounts.otherSeparators('1/of-2', '3')).not.toBe(await accounts.otherSeparators('1', '2/of-3'));
    expect(await accounts.otherSeparators('1', '2/of-3')).toBe('account/1/of-2%2Fof%2D3');
  });

  it('a value that makes the key too long is refused', async () => {
    expect(await accounts.byName('x'.repeat(1016))).toHaveLength(1024);
    await expect(accounts.byName('x'.repeat(1017))).rejects.toBeInstanceOf(LockKeyError);
  });

  it('a value that is longer than a key may be is refused before it is escaped, which would take long', async () => {
    const escapes = jest.spyOn(String.prototype, 'replace');
    try {
      await expect(accounts.byName(':'.repeat(1025))).rejects.toHaveProperty(
        'detail',
        expect.stringContaining('<id> in the lock key "account:<id>" of Accounts.byName() has 1025 characters'),
      );
      expect(escapes.mock.contexts.filter((text) => String(text).length === 1025)).toEqual([]);
    } finally {
      escapes.mockRestore();
    }
  });
});

/** Values of which no key can be made. */
const BAD_VALUES: [string, unknown][] = [
  ['undefined', undefined],
  ['null', null],
  ['an empty string', ''],
  ['NaN', NaN],
  ['Infinity', -Infinity],
  ['an object', { id: '7' }],
  ['an object with a toString of its own', { toString: () => '7' }],
  ['an array', ['7']],
  ['a Date', new Date()],
  ['a function', () => '7'],
  ['a symbol', Symbol('7')],
];

const BAD_KEYS: [string, unknown][] = [
  ...BAD_VALUES.filter(([what]) => what !== 'an array'),
  ['a number', 7],
  ['an empty array', []],
  ['an array with an empty string', ['account:7', '']],
  ['an array with a number', ['account:7', 7]],
  ['an array with a hole', new Array<string>(1)],
  ['an array with a hole behind a key', Object.assign(new Array<string>(2), ['account:7'])],
  ['a nested array', [['account:7']]],
  ['an array of empty arrays', [[], []]],
  ['a String object', Object('account:7')],
  ['an array with a String object', [Object('account:7')]],
  ['an array with a symbol', [Symbol('account:7')]],
  ['an array with a key that is too long', ['account:7', 'x'.repeat(1025)]],
  ['half a surrogate pair, which Redis would take for any other half', 'account:\uD83D'],
  ['the other half', 'account:\uDC69'],
  ['the halves in the wrong order', 'account:\uDC69\uD83D'],
  ['an array with half a surrogate pair', ['account:7', '\uD83D']],
  ['a promise', Promise.resolve('account:7')],
  ['a string that is too long', 'x'.repeat(1025)],
];

/** A Proxy of an array whose lengths are these, one after the other. */
function withLengths(...lengths: unknown[]): string[] {
  return new Proxy(['account:7', 'account:8'], {
    get: (keys, name) => (name === 'length' ? lengths.shift() : Reflect.get(keys, name)) as unknown,
  });
}

function* endless(): Generator<string> {
  for (;;) yield 'account:9';
}

function revoked(): string[] {
  const { proxy, revoke } = Proxy.revocable(['account:7'], {});
  revoke();
  return proxy;
}

function throwingAt(position: string): string[] {
  return new Proxy(['account:7', 'account:8'], {
    get: (keys, name) => {
      if (name === position) throw new Error('nobody may read this');
      return Reflect.get(keys, name) as unknown;
    },
  });
}

function growing(): string[] {
  const keys = ['account:7'];
  return Object.defineProperty(keys, 0, {
    get: () => {
      keys.push('account:8');
      return 'account:7';
    },
  });
}

describe('arrays of keys that are more than arrays', () => {
  const locked = async (keys: string[]) => {
    const locks = module.get(LockService);
    const inside = await locks.withLock(keys, async () => store.asked.splice(0).sort());
    expect(await accounts.byFunction((() => keys) as unknown as () => string)).toBe(inside[0]);
    expect(store.asked.sort()).toEqual(inside);
    return inside;
  };

  it.each([
    ['other keys', ['account:9']],
    ['fewer keys', ['account:7']],
    ['no keys', []],
    ['endless keys', endless()],
  ])('a call locks the keys at the positions of an array that iterates over %s', async (_what, other) => {
    expect(await locked(iteratingOver(other, 'account:7', 'account:8'))).toEqual(['account:7', 'account:8']);
  });

  it('a call locks the templates at the positions of an array that iterates over fewer', async () => {
    await accounts.strangeTemplates('7', '8');
    expect(store.asked).toEqual(['account:7', 'account:8']);
  });

  it('a call locks the keys of a Proxy of an array', async () => {
    expect(await locked(new Proxy(['account:7', 'account:8'], {}))).toEqual(['account:7', 'account:8']);
  });

  it.each<[string, () => string[]]>([
    ['whose length shrinks', () => withLengths(2, 1)],
    ['whose length grows', () => withLengths(1, 2)],
    ['that grows while it is read', growing],
    ['whose length is no number', () => withLengths('two', 'two')],
    ['whose length is NaN', () => withLengths(NaN, NaN)],
    ['whose length is negative', () => withLengths(-1, -1)],
    ['whose length is a fraction', () => withLengths(1.5, 1.5)],
    ['whose length is infinite', () => withLengths(Infinity, Infinity)],
    ['whose length is a symbol', () => withLengths(Symbol('2'), Symbol('2'))],
    ['whose length throws', () => throwingAt('length')],
    ['whose second key throws', () => throwingAt('1')],
    ['that is a revoked Proxy', revoked],
  ])('a call is refused before the store is asked when its keys are an array %s', async (_what, keys) => {
    const locks = module.get(LockService);
    await expect(locks.withLock(keys(), async () => accounts.ran++)).rejects.toBeInstanceOf(LockKeyError);
    await expect(locks.lock(keys())).rejects.toBeInstanceOf(LockKeyError);
    await expect(locks.tryLock(keys())).rejects.toBeInstanceOf(LockKeyError);
    await expect(accounts.byFunction(keys as unknown as () => string)).rejects.toBeInstanceOf(LockKeyError);
    for (const question of ['isLocked', 'inspect', 'forceUnlock'] as const)
      await expect(locks[question](keys() as unknown as string)).rejects.toBeInstanceOf(LockKeyError);
    expect(store.asked).toEqual([]);
    expect(accounts.ran).toBe(0);
  });
});

describe('calls without a usable key', () => {
  const refused = async (call: Promise<unknown>) => {
    await expect(call).rejects.toBeInstanceOf(LockKeyError);
    expect(store.asked).toEqual([]);
    expect(accounts.ran).toBe(0);
  };

  it.each(BAD_VALUES)('a call is refused before the store is asked when the value in its key is %s', (_what, value) =>
    refused(accounts.byName(value)),
  );
  it.each(BAD_VALUES)(
    'a call is refused before the store is asked when the value at the end of a path is %s',
    (_what, value) => refused(accounts.byPath({ owner: { id: value } })),
  );
  it.each([undefined, null, {}, { owner: undefined }, { owner: null }, 'text'])(
    'a call is refused before the store is asked when there is no path into %j',
    (dto) => refused(accounts.byPath(dto)),
  );
  it('a call is refused before the store is asked when a path takes a position of a text', () =>
    refused(accounts.byFirst('42')));
  it('a call is refused before the store is asked when one of its keys has no value', () =>
    refused(accounts.several('1', undefined)));
  it('a call is refused before the store is asked when an argument with a default value is left out', () =>
    refused(accounts.withDefaultValue()));

  it.each(BAD_KEYS)('a call is refused before the store is asked when the key function returns %s', (_what, key) =>
    refused(accounts.byFunction(() => key as string)),
  );

  it.each(BAD_KEYS)(
    'a call is refused before the store is asked when the key given to lock() is %s',
    async (_what, key) => {
      const locks = module.get(LockService);
      await refused(locks.withLock(key as string, async () => accounts.ran++));
      await refused(locks.lock(key as string));
      await refused(locks.tryLock(key as string));
      for (const question of ['isLocked', 'inspect', 'forceUnlock'] as const)
        await refused(locks[question](key as string));
    },
  );

  it.each(['isLocked', 'inspect', 'forceUnlock'] as const)(
    'a call is refused before the store is asked when it wants several keys with %s',
    (question) => refused(module.get(LockService)[question](['account:7', 'account:8'] as unknown as string)),
  );

  it('an HttpException that the key function throws passes untouched', async () => {
    const error = new UnauthorizedException('who are you?');
    await expect(
      accounts.byFunction(() => {
        throw error;
      }),
    ).rejects.toBe(error);
  });

  it('a call is refused before the store is asked when the key function throws, and the error says so', async () => {
    const cause = new TypeError('no such bank');
    const call = accounts.byFunction(() => {
      throw cause;
    });
    await refused(call);
    await expect(call).rejects.toMatchObject({
      detail: expect.stringMatching(/Accounts\.byFunction\(\).*no such bank/),
      cause,
    });
  });

  it('the error about a value in a key names the placeholder, the template, the method and the value', async () => {
    await expect(accounts.byPath({ owner: {} })).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/<dto\.owner\.id>.*"account:<dto\.owner\.id>".*Accounts\.byPath\(\) is undefined/),
    );
  });

  it('the error about an argument that is left out tells of default values', async () => {
    await expect(accounts.withDefaultValue()).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/withDefaultValue\(\) is undefined.*default value of a parameter is set after the key/),
    );
  });
});
