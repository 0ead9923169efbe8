import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

const HERE = resolve('.');

/** An app with one locked method, which tells the key of a call. */
const appWith = (method: string, key: string) => `
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockService, RedisLockModule, WithLock } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';

class Payout {
  ${method}
}
const descriptor = Object.getOwnPropertyDescriptor(Payout.prototype, 'run');
WithLock('${key}')(Payout.prototype, 'run', descriptor);
Object.defineProperty(Payout.prototype, 'run', descriptor);

class AppModule {}
Module({ imports: [RedisLockModule.forRoot({ store: new MemoryLockStore() })], providers: [Payout] })(AppModule);
const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
app.get(LockService).events.subscribe(({ type, keys }) => type === 'acquired' && console.log('locked', ...keys));
await app.get(Payout).run({ id: '42' }, '7');
await app.close();
`;

describe('The parser of class sources', () => {
  let folder: string;
  let packages: string;

  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'lazy parser (1) c# 100% what? a%20b-')));
    packages = join(folder, 'node_modules');
    mkdirSync(join(packages, 'nest-redis-lock'), { recursive: true });
    for (const part of ['dist', 'package.json'])
      cpSync(join(HERE, part), join(packages, 'nest-redis-lock', part), { recursive: true });
    for (const name of ['@nestjs', 'ioredis', 'ms', 'reflect-metadata', 'rxjs']) link(name);
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  const link = (name: string) => symlinkSync(join(HERE, 'node_modules', name), join(packages, name));

  function linkOwnParser(): void {
    const own = join(packages, 'nest-redis-lock', 'node_modules');
    mkdirSync(own);
    symlinkSync(join(HERE, 'node_modules', 'acorn'), join(own, 'acorn'));
  }

  /** What the app says. */
  const run = async (app: string, ...flags: readonly string[]) => {
    const main = join(folder, 'main.mjs');
    writeFileSync(main, app);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [...flags, main], { cwd: folder }).catch(
      (error: { stdout: string; stderr: string }) => error,
    );
    return stripVTControlCharacters(stdout + stderr);
  };

  it.each([
    ['async run(dto, to) { return to; }', 'pay:<dto.id>:<to>'],
    ['async run(a, b) { return b; }', 'pay:<0.id>:<1>'],
  ])('an app whose method "%s" has plain parameters starts with the key %s without the parser', async (...one) => {
    expect(await run(appWith(...one))).toBe('locked pay:42:7\n');
  });

  const DESTRUCTURED = appWith('async run({ id }, to) { return id; }', 'pay:<id>:<to>');

  it.each([[], ['--enable-source-maps'], ['--stack-trace-limit=0']])(
    'an app whose methods have other parameters loads the parser, with the flags %j',
    async (...flags) => {
      link('acorn');
      expect(await run(DESTRUCTURED, ...flags)).toBe('locked pay:42:7\n');
    },
  );

  it.each<[written: string, flags: readonly string[]]>([
    ['URLs', []],
    ['paths', ['--enable-source-maps']],
  ])(
    'an app in a folder with any name loads the parser that only the package can see, when stacks have %s',
    async (_written, flags) => {
      linkOwnParser();
      expect(await run(DESTRUCTURED, ...flags)).toBe('locked pay:42:7\n');
    },
  );

  it('an app loads the parser from its working directory when stacks name no files of this machine', async () => {
    link('acorn');
    const named =
      "Object.defineProperty(Error, 'prepareStackTrace', { value: () => 'at define (webpack://app/main.js:1:1)' });";
    expect(await run(DESTRUCTURED.replace('class Payout', `${named}\nclass Payout`))).toBe('locked pay:42:7\n');
  });

  it.each([
    ['a tool shortens the stacks', "Error.prepareStackTrace = () => 'Error in define main.js';"],
    [
      'the app has made a global "require"',
      "globalThis.require = process.getBuiltinModule('module').createRequire(import.meta.url);",
    ],
  ])('an app loads the parser that only the package can see, when %s', async (_what, line) => {
    linkOwnParser();
    expect(await run(DESTRUCTURED.replace('class Payout', `${line}\nclass Payout`))).toBe('locked pay:42:7\n');
  });

  it('an app in one bundle has the parser in it, also when it has made a global "require"', async () => {
    const bundle = join(packages, 'nest-redis-lock', 'dist', 'nest.js');
    const bundled = `process.getBuiltinModule('module').createRequire(${JSON.stringify(HERE + '/')})('acorn')`;
    const code = readFileSync(bundle, 'utf8');
    expect(code).toContain("require('acorn')");
    writeFileSync(bundle, code.replace("require('acorn')", bundled));
    const line = "globalThis.require = process.getBuiltinModule('module').createRequire(import.meta.url);";
    expect(await run(DESTRUCTURED.replace('class Payout', `${line}\nclass Payout`))).toBe('locked pay:42:7\n');
  });

  it('an app that finds only an old parser fails, and does not stand still', async () => {
    mkdirSync(join(packages, 'acorn'));
    writeFileSync(
      join(packages, 'acorn', 'index.js'),
      "exports.version = '7.4.1'; exports.parse = () => { for (;;); };",
    );
    const said = await run(DESTRUCTURED);
    expect(said).toContain('install "acorn" 8');
    expect(said).toContain('acorn 7.4.1 is too old.');
  });

  it('an app that needs the parser and does not have it fails when the class is defined, and says why', async () => {
    const said = await run(DESTRUCTURED);
    expect(said).toContain('nest-redis-lock needs the package "acorn" to read the source of a class');
    expect(said).not.toContain('locked');
  });
});
