// Packs the library, installs the tarball into an empty folder, and takes a lock there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-'));
const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
const peers = ['@nestjs/common', '@nestjs/core', 'ioredis', 'reflect-metadata', 'rxjs'].map((name) => `${name}@${devDependencies[name]}`);

try {
  const [packed] = JSON.parse(execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { encoding: 'utf8' }));
  const strangers = packed.files.map(({ path }) => path).filter((path) => !/^(dist\/.*\.(js|d\.ts)|package\.json|README\.md|CHANGELOG\.md|LICENSE)$/.test(path));
  assert.deepEqual(strangers, [], 'the tarball holds files that users do not need');

  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  execFileSync('npm', ['install', '--no-fund', '--no-audit', '--silent', join(folder, packed.filename), ...peers], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  writeFileSync(
    join(folder, 'app.mjs'),
    `
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { LockService } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';

class App {}
const app = await NestFactory.createApplicationContext({ module: App, imports: [LockTestingModule.forRoot()] }, { logger: false });
const key = await app.get(LockService).withLock('account:42', (lock) => lock.key);
await app.close();
console.log(key);
`,
  );
  const said = execFileSync('node', ['app.mjs'], { cwd: folder, encoding: 'utf8' });
  assert.equal(said.trim(), 'account:42');
  console.log(`${packed.filename}: ${packed.files.length} files, ${Math.round(packed.size / 1024)} kB packed, installs and locks.`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
