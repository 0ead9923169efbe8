import { execFileSync } from 'node:child_process';
import { env, execPath } from 'node:process';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';

/** Only ioredis 6 knows of this option. */
const SCRIPT =
  "import { Redis } from 'ioredis'; " +
  "process.stdout.write(String('protocol' in new Redis({ lazyConnect: true }).options));";

it('tests run on the ioredis that was asked for, and so do the processes that they start', () => {
  const isOn6 = env.IOREDIS !== '5';
  expect('protocol' in new Redis({ lazyConnect: true }).options).toBe(isOn6);
  expect(execFileSync(execPath, ['--input-type=module', '-e', SCRIPT], { encoding: 'utf8' })).toBe(String(isOn6));
});
