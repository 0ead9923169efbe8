import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { TIMELESS } from '../lanes.mjs';

const isTimeless = (spec: string) => TIMELESS.some((pattern) => new RegExp(pattern).test(spec));

/** What a spec must not do that runs beside those that are about time, with less of the processor than they have. */
const NEEDS_TIME = /\b(?:startRedis|withRedis|startProxy|sleep)\(|\b(?:RedisServers|Stage|TestChild)\b/;

const specs = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.spec.ts'))
  .map((file) => join('test', file));

it('no spec of the second lane starts a server or a process, or sleeps', () => {
  const timeless = specs.filter(isTimeless);
  expect(timeless.length).toBeGreaterThan(50);
  const itself = 'test/architecture/lanes.spec.ts';
  expect(timeless.filter((spec) => NEEDS_TIME.test(readFileSync(spec, 'utf8')))).toEqual([itself]);
});

it('specs that need real processes, or that every store runs, run one after the other', () => {
  expect(specs.filter((spec) => /^test\/(?:processes|store)\//.test(spec)).some(isTimeless)).toBe(false);
});
