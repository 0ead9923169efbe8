import { argv, env } from 'node:process';
import { SLOW_TIER } from './test/slow-tier.mjs';

/** `IOREDIS=5 npm test` runs everything on ioredis 5: here by the mapper, in child processes by a hook. */
const isOnIoredis5 = env.IOREDIS === '5';
if (isOnIoredis5)
  env.NODE_OPTIONS = `${env.NODE_OPTIONS ?? ''} --import=${new URL('test/support/redis/ioredis-5.mjs', import.meta.url).href}`;

/** Whoever names specs or folders wants them, whatever their tier. */
const areNamed = argv.slice(2).some((arg) => arg.startsWith('test/'));

/** @type {import('jest').Config} */
export default {
  testMatch: ['<rootDir>/test/**/*.spec.ts'],
  testPathIgnorePatterns: areNamed ? [] : SLOW_TIER,
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    ...(isOnIoredis5 && { '^ioredis$': 'ioredis-5' }),
    '^nest-redis-lock$': '<rootDir>/lib/index.ts',
    '^nest-redis-lock/opentelemetry$': '<rootDir>/lib/opentelemetry/index.ts',
    '^nest-redis-lock/page$': '<rootDir>/lib/page/index.ts',
    '^nest-redis-lock/prometheus$': '<rootDir>/lib/prometheus/index.ts',
    '^nest-redis-lock/terminus$': '<rootDir>/lib/terminus/index.ts',
    '^nest-redis-lock/testing$': '<rootDir>/lib/testing/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          keepClassNames: true,
        },
        module: { type: 'es6' },
      },
    ],
  },
  // One after the other, as most tests are about time; those that are not run beside them: test/lanes.mjs.
  runner: '<rootDir>/test/support/jest/two-lanes.mjs',
  maxWorkers: 1,
  // What ES modules leave behind in a process adds up to gigabytes, whose garbage collections stop everything for longer than a
  // lease: so the process is a new one now and then.
  workerIdleMemoryLimit: '512MB',
  workerGracefulExitTimeout: 5_000,
  // A busy machine may take its time: what has to be quick says so itself.
  testTimeout: 15_000,
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/sample-app/dist/'],
  globalSetup: '<rootDir>/test/support/redis/redis-server-installed.mjs',
  coverageProvider: 'v8',
  collectCoverageFrom: ['lib/**/*.ts'],
};
