import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { circlesBelow, circlesIn, importsBelow, importsOf, type Import } from './imports.js';

const LIB = fileURLToPath(new URL('../../lib', import.meta.url));
const NEST = ['@nestjs/common', '@nestjs/core'];

/**
 * What the files of each room may import: rooms of lib/ and packages. A room is a folder with all below it, but for
 * what is a room of its own. Data goes down, so nothing imports upward.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  errors: ['errors'],
  log: ['log', ...NEST],
  collections: ['collections'],
  clock: ['clock', 'collections', 'errors', 'ms'],
  store: ['store', 'errors'],
  'store/memory': ['store/memory', 'store', 'clock', 'collections', 'errors'],
  'store/quorum': ['store/quorum', 'store', 'clock', 'collections', 'errors'],
  'redis/wire': ['redis/wire', 'store', 'errors'],
  'redis/lua': ['redis/lua', 'redis/wire', 'store'],
  'redis/connection': ['redis/connection', 'redis/lua', 'redis/wire', 'clock', 'collections', 'errors', 'ioredis'],
  'redis/wake': ['redis/wake', 'redis/connection', 'redis/wire', 'store', 'clock', 'errors', 'ioredis'],
  'redis/locks': [
    ...['redis/locks', 'redis/wake', 'redis/connection', 'redis/lua', 'redis/wire'],
    ...['store/quorum', 'store', 'clock', 'errors', 'ioredis'],
  ],
  'redis/durability': ['redis/durability', 'redis/connection', 'store/quorum', 'store', 'clock', 'errors'],
  'redis/cluster': [
    ...['redis/cluster', 'redis/locks', 'redis/connection', 'redis/lua', 'redis/wire'],
    ...['store', 'clock', 'errors', 'ioredis'],
  ],
  redis: [
    ...['redis', 'redis/cluster', 'redis/durability', 'redis/locks', 'redis/connection'],
    ...['store/quorum', 'store', 'errors'],
  ],
  'core/request': ['core/request', 'store', 'clock', 'errors'],
  'core/lease': ['core/lease', 'core/request', 'store', 'clock', 'collections', 'errors'],
  'core/waiting': ['core/waiting', 'core/lease', 'core/request', 'store', 'clock', 'collections', 'errors'],
  'core/lock': ['core/lock', 'core/waiting', 'core/lease', 'core/request', 'store', 'clock', 'errors'],
  'core/nesting': [
    ...['core/nesting', 'core/lock', 'core/waiting', 'core/lease', 'core/request'],
    ...['store', 'clock', 'collections', 'errors'],
  ],
  'core/list': ['core/list', 'core/lease', 'core/waiting', 'core/request', 'store', 'clock', 'errors'],
  core: [
    ...['core', 'core/list', 'core/nesting', 'core/lock', 'core/waiting', 'core/lease', 'core/request'],
    ...['store', 'clock', 'errors'],
  ],
  http: ['http', 'core/nesting', 'clock', 'log', 'collections', 'errors', ...NEST, 'rxjs'],
  service: [
    ...['service', 'core', 'core/nesting', 'core/lock', 'core/request', 'store', 'clock', 'log', 'errors'],
    ...[...NEST, 'rxjs'],
  ],
  'decorators/source': ['decorators/source', 'errors', 'acorn'],
  'decorators/key': ['decorators/key', 'decorators/source', 'core/request', 'errors', ...NEST, 'reflect-metadata'],
  'decorators/stream': ['decorators/stream', 'service', 'core', 'core/lock', 'clock', 'log', 'errors', ...NEST, 'rxjs'],
  'decorators/method': ['decorators/method', 'decorators/stream', 'decorators/source', 'errors', 'reflect-metadata'],
  'decorators/options': ['decorators/options', 'decorators/key', 'service', 'core/request', 'errors', 'rxjs'],
  'decorators/call': [
    ...['decorators/call', 'decorators/options', 'decorators/method', 'decorators/stream'],
    ...['service', 'http', 'core/lock', 'core/request', 'clock', 'errors'],
  ],
  'decorators/request-scope': [
    ...['decorators/request-scope', 'decorators/call', 'decorators/options', 'decorators/method', 'decorators/stream'],
    'decorators/source',
    ...['service', 'http', 'core', 'core/lock', 'core/request', 'clock', 'errors', ...NEST, 'rxjs'],
  ],
  'decorators/instance': [
    ...['decorators/instance', 'decorators/call', 'decorators/method', 'decorators/source', 'errors'],
  ],
  decorators: [
    ...['decorators', 'decorators/instance', 'decorators/request-scope', 'decorators/call', 'decorators/options'],
    ...['decorators/method', 'decorators/key', 'service', 'core/request', 'errors', ...NEST, 'reflect-metadata'],
  ],
  boot: [
    ...[
      'boot',
      'decorators',
      'decorators/instance',
      'decorators/request-scope',
      'decorators/call',
      'decorators/method',
    ],
    ...['decorators/key', 'decorators/source', 'service', 'http', 'log', 'errors', ...NEST],
  ],
  module: [
    ...['module', 'boot', 'decorators', 'service', 'http', 'redis', 'redis/connection', 'redis/durability'],
    ...['core/request', 'store', 'clock', 'log', 'errors', ...NEST],
  ],
  '.': [
    ...['module', 'decorators', 'decorators/options', 'decorators/key', 'service', 'http'],
    ...['core', 'core/lock', 'core/request', 'redis/connection', 'store', 'clock', 'errors'],
  ],
  cli: [
    ...['cli', 'cli/arguments', 'cli/run', 'cli/ls', 'cli/watch', 'cli/inspect', 'cli/unlock', 'cli/doctor'],
    ...['clock', 'errors'],
  ],
  'cli/ls': ['cli/ls', 'cli/show', 'cli/redis', 'cli/arguments', 'cli', 'service', 'core'],
  'cli/watch': ['cli/watch', 'cli/show', 'cli/redis', 'cli/arguments', 'cli', 'core', 'core/request', 'clock'],
  'cli/doctor': [
    ...['cli/doctor', 'cli/show', 'cli/redis', 'cli/arguments', 'cli', 'module', 'service', 'redis/connection'],
    'redis/cluster',
    ...['clock', 'errors', 'ioredis'],
  ],
  'cli/show': ['cli/show', 'cli/redis', 'cli/arguments', 'core', 'service', 'errors'],
  'cli/inspect': ['cli/show', 'cli/redis', 'cli/arguments', 'cli'],
  'cli/unlock': ['cli/show', 'cli/redis', 'cli/arguments', 'cli', 'core'],
  'cli/arguments': ['cli/arguments', 'cli', 'errors'],
  'cli/redis': [
    ...['cli/redis', 'cli/arguments', 'cli', 'module', 'service', 'core', 'redis', 'redis/connection'],
    ...['clock', 'errors', 'ioredis'],
  ],
  'cli/run': [
    ...['cli/run', 'cli/redis', 'cli/arguments', 'cli', 'service', 'core/lock', 'core/request', 'clock', 'errors'],
  ],
  page: [
    'page',
    'http',
    'service',
    'core',
    'core/list',
    'core/lock',
    'core/request',
    'store',
    'clock',
    'log',
    'errors',
    ...NEST,
  ],
  metrics: ['metrics', 'service', 'core/lock', 'log', 'collections', 'errors', 'rxjs'],
  opentelemetry: [
    ...['opentelemetry', 'metrics', 'boot', 'service', 'core', 'core/lock', 'core/request', 'clock', 'log', 'errors'],
    ...[...NEST, '@opentelemetry/api'],
  ],
  prometheus: ['prometheus', 'metrics', 'boot', 'service', 'errors', ...NEST, 'prom-client'],
  terminus: ['terminus', 'service', 'errors', ...NEST, '@nestjs/terminus'],
  testing: [
    ...['testing', '.', 'module', 'service', 'http', 'core/request', 'store', 'store/memory', 'clock', 'errors'],
    ...NEST,
  ],
};

/** The one file below the Nest face that knows Nest: docs/decisions/0002. */
const EXCEPTIONS = ['errors/lock.error.ts imports @nestjs/common'];

/** The room of a folder: itself, or the nearest one above it. A package is its own. */
function roomOf(folder: string): string {
  if (folder in MAY_IMPORT || folder.startsWith('@') || !folder.includes('/')) return folder;
  return roomOf(folder.slice(0, folder.lastIndexOf('/')));
}

function violations(imports: readonly Import[]): string[] {
  return imports
    .map(({ file, from, to }) => ({ file, from: roomOf(from), to: roomOf(to) }))
    .filter(({ from, to }) => !to.startsWith('node:') && !MAY_IMPORT[from]?.includes(to))
    .map(({ file, to }) => `${file} imports ${to}`)
    .filter((violation) => !EXCEPTIONS.includes(violation));
}

describe('The layers of lib/', () => {
  it('the files of lib/ import only downward; Nest only in the Nest face, ioredis only in redis/', () => {
    const imports = importsBelow(LIB);
    expect(imports.length).toBeGreaterThan(100);
    expect(violations(imports)).toEqual([]);
  });

  it('the check of the layers finds forbidden imports', () => {
    const bad = [
      ...importsOf(
        LIB,
        'core/lock.ts',
        `import { Injectable } from '@nestjs/common'; import { Redis } from 'ioredis';`,
      ),
      ...importsOf(
        LIB,
        'store/memory-lock.store.ts',
        `import { LockService } from '../service/lock.service.js'; import type { Lock } from '../core/lock.js';`,
      ),
    ];
    expect(violations(bad)).toEqual([
      'core/lock.ts imports @nestjs/common',
      'core/lock.ts imports ioredis',
      'store/memory-lock.store.ts imports service',
      'store/memory-lock.store.ts imports core',
    ]);
  });
});

const inFolder = (top: string, folder: string): boolean => folder === top || folder.startsWith(`${top}/`);

it('no files of lib/ import each other in a circle, not even types', () => {
  expect(circlesBelow(LIB)).toEqual([]);
});

it('the check for circles finds a circle of imports with all its files', () => {
  const imports = new Map([
    ['a.ts', ['b.ts', 'd.ts']],
    ['b.ts', ['c.ts']],
    ['c.ts', ['a.ts']],
    ['d.ts', []],
    ['e.ts', ['a.ts']],
  ]);
  expect(circlesIn(imports)).toEqual([['a.ts', 'b.ts', 'c.ts']]);
});

describe('The layers of lib-page/', () => {
  const PAGE = fileURLToPath(new URL('../../lib-page', import.meta.url));
  const PREACT = ['preact', 'uplot'];
  const MAY_IMPORT_IN_PAGE: Record<string, readonly string[]> = {
    feed: ['feed', '../lib/page'],
    parts: ['parts', 'feed', '../lib/page', ...PREACT],
    views: ['views', 'parts', 'feed', '../lib/page', ...PREACT],
    frame: ['frame', 'parts', 'feed', '../lib/page', ...PREACT],
    '.': ['.', 'views', 'frame', 'parts', 'feed', '../lib/page', ...PREACT],
  };

  it('the files of lib-page/ import only downward, and of lib/ only the types of what they show', () => {
    const imports = importsBelow(PAGE);
    expect(imports.length).toBeGreaterThan(50);
    expect(imports.filter(({ from, to }) => !MAY_IMPORT_IN_PAGE[from]?.includes(to))).toEqual([]);
    expect(circlesBelow(PAGE)).toEqual([]);
  });
});

it('the sample app in src/ does not know what starts it in dev/', () => {
  const imports = importsBelow(fileURLToPath(new URL('../../sample-app', import.meta.url)));
  expect(imports.filter(({ from, to }) => inFolder('dev', from) && inFolder('src', to)).length).toBeGreaterThan(0);
  expect(imports.filter(({ from, to }) => inFolder('src', from) && inFolder('dev', to))).toEqual([]);
});
