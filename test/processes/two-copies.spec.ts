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
  const run = async (library: string) => {
    const main = join(folder, 'main.mjs');
    writeFileSync(main, appOf(library));
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

  it('an app that loads one copy logs no warning', async () => {
    const said = await run('nest-redis-lock');
    expect(said).toContain('Locks live');
    expect(said).not.toContain('This app loads');
  });
});
