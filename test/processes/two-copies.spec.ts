import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

const HERE = resolve('.');

/** An app whose own copy of the package is not the one that a library of it has. */
const appOf = (library: string) => `
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedisLockModule } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { LockService, WithLock } from ${JSON.stringify(library)};

class Payout { async run() {} }
WithLock('payout')(Payout.prototype, 'run', Object.getOwnPropertyDescriptor(Payout.prototype, 'run'));

class AppModule {}
Module({ imports: [RedisLockModule.forRoot({ store: new MemoryLockStore() })], providers: [Payout] })(AppModule);
await (await NestFactory.createApplicationContext(AppModule)).close();
`;

/** The same; the library gives its object to Nest, or locks in a module with a name. It tells how each call ended. */
const appWith = (library: string, options: string, provider: string, name = '') => `
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getLockServiceToken, RedisLockModule } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { WithLock } from ${JSON.stringify(library)};

let locks;
class Library {
  async pay() { console.log('pay held', await locks.isLocked('pay')); }
  async *rows() { console.log('rows held', await locks.isLocked('rows')); yield 1; }
}
for (const name of ['pay', 'rows']) {
  const method = Object.getOwnPropertyDescriptor(Library.prototype, name);
  WithLock(name, ${options})(Library.prototype, name, method);
  Object.defineProperty(Library.prototype, name, method);
}
class AppModule {}
Module({ imports: [RedisLockModule.forRoot({ store: new MemoryLockStore(), ${name} })], providers: [${provider}] })(AppModule);
const app = await NestFactory.createApplicationContext(AppModule);
locks = app.get(getLockServiceToken(${options}.module));
const library = app.get('library');
await library.pay().catch(({ code }) => console.log('pay ends', code));
try { for await (const _ of library.rows()); } catch ({ code }) { console.log('rows ends', code); }
await app.close();
`;

describe('Copies of the package', () => {
  let folder: string;

  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'two-copies-')));
    const packages = join(folder, 'node_modules');
    mkdirSync(join(packages, 'nest-redis-lock'), { recursive: true });
    for (const part of ['dist', 'package.json'])
      cpSync(join(HERE, part), join(packages, 'nest-redis-lock', part), { recursive: true });
    for (const name of ['@nestjs', 'acorn', 'ioredis', 'ms', 'reflect-metadata', 'rxjs'])
      symlinkSync(join(HERE, 'node_modules', name), join(packages, name));
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  /** What it says. */
  const run = async (library: string, app = appOf(library)) => {
    const main = join(folder, 'main.mjs');
    writeFileSync(main, app);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [main], { cwd: folder }).catch(
      (error: { stdout: string; stderr: string }) => error,
    );
    return stripVTControlCharacters(stdout + stderr);
  };

  it('an app that loads two copies logs where they are before Nest misses the LockService', async () => {
    const said = await run(join(HERE, 'dist', 'index.js'));
    const copies = [HERE, join(folder, 'node_modules', 'nest-redis-lock')];
    const warned = /WARN \[RedisLock\] This app loads 2 copies of nest-redis-lock: (.*) and (.*)\. A class/.exec(said)!;
    expect(warned.slice(1).sort()).toEqual(copies.sort());
    expect(said).toContain('npm ls nest-redis-lock');
    expect(said.indexOf("can't resolve dependencies of the Payout")).toBeGreaterThan(warned.index);
  });

  it('a library with a copy of its own finds no module of the app by its name', async () => {
    const library = join(HERE, 'dist', 'index.js');
    const provider = "{ provide: 'library', useClass: Library }";
    const said = await run(library, appWith(library, "{ module: 'billing' }", provider, "name: 'billing'"));
    expect(said).toContain("can't resolve dependencies of the Library");
    expect(said).not.toContain('held');
  });

  it.each([
    "{ provide: 'library', useFactory: () => new Library() }",
    "{ provide: 'library', useValue: new Library() }",
  ])('an object of a library with another copy runs nothing outside of a lock: %s', async (provider) => {
    const library = join(HERE, 'dist', 'index.js');
    const said = await run(library, appWith(library, '{}', provider));
    expect(said).toMatch(
      /calls are refused with LockNotWiredError[^]*pay ends LOCK_NOT_WIRED\nrows ends LOCK_NOT_WIRED/,
    );
    expect(said).not.toContain('held');
    const ofOneCopy = await run(library, appWith('nest-redis-lock', '{}', provider));
    expect(ofOneCopy).toMatch(/pay held true\nrows held true/);
  });

  it('an app that loads one copy logs no warning', async () => {
    const said = await run('nest-redis-lock');
    expect(said).toContain('Locks live');
    expect(said).not.toContain('This app loads');
  });
});
