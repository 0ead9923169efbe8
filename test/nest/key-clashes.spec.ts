import { describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger, Module } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { LockOptionsError, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { boot } from './boot.js';

/** A class with two methods; their templates have parameters `x` and `y`. */
function withKeys(one: string | string[], two: string | string[] | ((x: string) => string)) {
  class Orders {
    @WithLock(one)
    async ship(x: string, y: string, note?: string) {
      return [x, y, note];
    }
  }
  class Reports {
    @WithLock(two as string)
    async print(x: string, y: string, note?: string) {
      return [x, y, note];
    }
  }
  return [Orders, Reports];
}

describe('two key templates', () => {
  it.each<[string | string[], string | string[], string | RegExp]>([
    ['a:<x>-<y>', 'a:<x>', 'such as "a:1-1"'],
    ['a:<x>-<y>', 'a:b-<y>', 'a:b-1'],
    ['a:new-<x>', 'a:<x>', 'a:new-1'],
    ['a:<x>/<y>', 'a:<x>-<y>', 'such as "a:1-/1"'],
    ['a:<x>:<y>@home', 'a:b:<y>', 'a:b:1@home'],
    [['a:<x>.<y>', 'b'], ['c', 'a:<x>'], 'a:1.1'],
  ])('%j and %j stop the boot when they make one key of different values', async (one, two, key) => {
    const attempt = boot(...withKeys(one, two));
    await expect(attempt).rejects.toBeInstanceOf(LockOptionsError);
    await expect(attempt).rejects.toThrow(/Reports\.print\(\).*Orders\.ship\(\)/);
    await expect(attempt).rejects.toThrow(key);
  });

  it.each<[string, string]>([
    ['a:<x>', 'a:<y>'],
    ['a:<x>', 'a:<x>:<y>'],
    ['a:<x>-<y>', 'b:<x>'],
    ['a:<x>-<y>', 'a:<y>-<x>'],
    ['<x>/<y>', 'a/b/<x>'],
    ['a:<x>-<y>', 'a:<x>-<y>-<x>'],
    ['a:<x>', 'a:{<x>}'],
    ['a:<x>', 'b'],
  ])('%j and %j do not stop the boot: they make no key of different values', (one, two) => boot(...withKeys(one, two)));

  it('a template and a function of the arguments do not stop the boot, whatever keys the function makes', () =>
    boot(...withKeys('a:<x>-<y>', (x) => `a:${x}`)));
});

it('the templates of a big app are compared in a short time', async () => {
  class Big {}
  for (let at = 0; at < 400; at++) {
    const descriptor = { value: async (x: string, y: string) => [x, y], configurable: true, writable: true };
    (WithLock(`thing:kind-${at}-of-<0>-in-<1>`) as MethodDecorator)(Big.prototype, `run${at}`, descriptor);
    Object.defineProperty(Big.prototype, `run${at}`, descriptor);
  }
  Injectable()(Big);
  const begin = performance.now();
  await boot(Big);
  expect(performance.now() - begin).toBeLessThan(3000);
}, 60_000);

it('a lazy module does not load when its template clashes with one of the app', async () => {
  const [Orders, Reports] = withKeys('a:<x>-<y>', 'a:<x>');
  const app = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    providers: [Orders!],
  }).compile();
  await app.init();
  @Module({ providers: [Reports!] })
  class Late {}
  await expect(app.get(LazyModuleLoader).load(() => Late)).rejects.toThrow(/Reports\.print\(\).*Orders\.ship\(\)/);
  await app.close();
});

it('an app that starts warns of a fixed key that a value of another template can be, with both methods', async () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  try {
    await boot(...withKeys('account:house', 'account:<x>'));
    expect(
      warn.mock.calls
        .flat()
        .filter((text) =>
          /"account:<x>" of Reports\.print\(\).*"account:house" of Orders\.ship\(\) make the same lock key, "account:house"/.test(
            String(text),
          ),
        ),
    ).toHaveLength(1);
    warn.mockClear();
    await boot(...withKeys('account:house', () => 'account:house'));
    await boot(...withKeys('account:{house}', 'account:<x>'));
    expect(warn.mock.calls.flat().filter((text) => /account/.test(String(text)))).toEqual([]);
  } finally {
    warn.mockRestore();
  }
});
