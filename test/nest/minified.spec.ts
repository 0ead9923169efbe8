import * as common from '@nestjs/common';
import { compileFunction } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import type { Type } from '@nestjs/common';
import { transform } from '@swc/core';
import * as library from 'nest-redis-lock';
import { WithLock } from 'nest-redis-lock';
import { boot } from './boot.js';

const SOURCE = `
  import { Injectable } from '@nestjs/common';
  import { WithLock } from 'nest-redis-lock';

  @Injectable()
  export class AccountService {
    @WithLock(KEY)
    async withdraw(userId: string, dto: { amount: number }) {
      return [userId, dto];
    }
  }
`;

/** As esbuild 0.28 writes it with --minify --format=cjs; and with --keep-names too. */
const DECORATE =
  'var d=Object.defineProperty,g=Object.getOwnPropertyDescriptor;var h=(s,a,r,t)=>{for(var m=t>1?void 0:t?g(a,r):a,e=s.length-1,f;e>=0;e--)(f=s[e])&&(m=(t?f(a,r,m):f(m))||m);return t&&m&&d(a,r,m),m};';
const ESBUILD = `${DECORATE}let t=class{async withdraw(a,m){return[a,m]}};h([(0,require("nest-redis-lock").WithLock)(KEY)],t.prototype,"withdraw",1),t=h([(0,require("@nestjs/common").Injectable)()],t);exports.AccountService=t;`;
const KEPT = ESBUILD.replace('h([(0', 'd(t,"name",{value:"AccountService",configurable:!0}),h([(0');

async function minifiedBySwc(keepsSpace = false): Promise<string> {
  const parser = { syntax: 'typescript', decorators: true } as const;
  const minify = { compress: true, mangle: { topLevel: true, keepClassNames: false }, module: true } as const;
  const { code } = await transform(SOURCE, {
    configFile: false,
    swcrc: false,
    minify: !keepsSpace,
    module: { type: 'commonjs' },
    jsc: { target: 'es2022', parser, transform: { legacyDecorator: true, decoratorMetadata: true }, minify },
  });
  return code;
}

/** Loads a build, as Node would, with this key in it. */
function loaded(code: string, key: string): Type {
  const exports: { AccountService?: Type } = {};
  const packages: Record<string, unknown> = { '@nestjs/common': common, 'nest-redis-lock': library };
  const run = compileFunction(code.replace('KEY', JSON.stringify(key)), ['require', 'exports'], {
    filename: '/app/dist/main.js',
  }) as (...args: unknown[]) => void;
  run((name: string) => packages[name], exports);
  return exports.AccountService!;
}

describe.each<[string, string, RegExp, () => string | Promise<string>]>([
  [
    'SWC',
    '<userId>',
    /^The lock key "account:<userId>" of \w{1,2}\.withdraw\(\) names <userId>\./,
    () => minifiedBySwc(),
  ],
  [
    'SWC that keeps the white space',
    '<userId>',
    /^The lock key "account:<userId>" of \w{1,2}\.withdraw\(\) names <userId>\./,
    () => minifiedBySwc(true),
  ],
  ['esbuild', '<userId>', /^The lock key "account:<userId>" of t\.withdraw\(\) names <userId>\./, () => ESBUILD],
  [
    'esbuild with its names kept',
    '<dto.id>',
    /^The lock key "account:<dto\.id>" of AccountService\.withdraw\(\) names <dto\.id>\./,
    () => KEPT,
  ],
])('a class that was minified by %s', (_by, placeholder, site, build) => {
  it('a minified class does not start with a template by name, and says why, where and what to write', async () => {
    const attempt = boot(loaded(await build(), `account:${placeholder}`));
    await expect(attempt).rejects.toThrow(site);
    await expect(attempt).rejects.toThrow(
      /This class looks minified: use <0>\. In this build its parameters are called \w, \w; the class is in \/app\/dist\/main\.js\./,
    );
  });

  it('a minified class does not start with a template that names a renamed parameter by chance', async () => {
    const code = await build();
    const [, first, second] = /withdraw\((\w),\s?(\w)\)/.exec(code)!;
    for (const name of [first, second])
      await expect(boot(loaded(code, `account:<${name}>`))).rejects.toThrow(/This class looks minified: use <0>\./);
  });

  it('a minified class starts with a template by position', async () => boot(loaded(await build(), 'account:<0>')));
});

/** How a class shows that nothing has renamed its parameters. */
const LONGER_NAMES: readonly (readonly [string, string])[] = [
  ['a constructor', 'constructor(rates) { this.rates = rates; }'],
  ['another method', 'async withdraw(id, { sum: amount }) { return amount; }'],
  ['a variable', 'total() { const sum = 0; return sum; }'],
  ['an arrow function', 'all() { return this.map((one) => one); }'],
  ['what is caught', 'all() { try { return 1; } catch (error) { return 2; } }'],
];

/** Compiles a class with a method that names its second parameter. */
const withShortNames = (more: string) =>
  loaded(
    `class Accounts {
      ${more}
      async move(b, a) {
        return [a, b];
      }
    }
    const move = Object.getOwnPropertyDescriptor(Accounts.prototype, 'move');
    require('nest-redis-lock').WithLock(KEY)(Accounts.prototype, 'move', move);
    Object.defineProperty(Accounts.prototype, 'move', move);
    exports.AccountService = Accounts;`,
    'account:<a>',
  );

it.each(LONGER_NAMES)(
  'a method whose parameters have one letter can name them where %s has longer names',
  async (_what, more) => {
    await boot(withShortNames(more));
  },
);

it.each([
  ['has no other names', ''],
  ['has other names of one letter', 'async withdraw(e, { amount: n }) { const o = e.amount; return [o, n]; }'],
  ['has longer names only for functions', 'all() { function sum() {} return sum; }'],
])('a method whose parameters have one letter must name positions where its class %s', async (_what, more) => {
  await expect(boot(withShortNames(more))).rejects.toThrow(
    /names <a>\. This class looks minified: use <0>\.[^]*If it is not minified, give its parameters longer names\./,
  );
});

it('a class with names as short as people write them is not taken for minified', async () => {
  class Accounts {
    @WithLock('account:<userId>')
    async move(id: string, to: string) {
      return [id, to];
    }
  }
  await expect(boot(Accounts)).rejects.toThrow(/names <userId>\. Known names: id, to\./);
});
