import { expect, it } from '@jest/globals';
import * as main from 'nest-redis-lock';
import * as opentelemetry from 'nest-redis-lock/opentelemetry';
import * as prometheus from 'nest-redis-lock/prometheus';
import * as terminus from 'nest-redis-lock/terminus';
import * as testing from 'nest-redis-lock/testing';

/** What is there at run time; the types are in the reports beside this file. */
it('nest-redis-lock exports what users need, and nothing else', () => {
  expect(Object.keys(main).sort()).toEqual([
    'CurrentLock',
    'InjectLocks',
    'Lock',
    'LockError',
    'LockExceptionFilter',
    'LockInterceptor',
    'LockKeyError',
    'LockLostError',
    'LockNotWiredError',
    'LockOptionsError',
    'LockService',
    'LockTimeoutError',
    'LockUnavailableError',
    'RedisLockModule',
    'WithLock',
    'getLockServiceToken',
    'isLockError',
    'lockKey',
  ]);
});

it('nest-redis-lock/testing exports what tests need, and nothing else', () => {
  expect(Object.keys(testing).sort()).toEqual(['LockTestingModule', 'MemoryLockStore', 'TestLockService']);
});

it('nest-redis-lock/terminus exports its indicator, and nothing else', () => {
  expect(Object.keys(terminus)).toEqual(['LockHealthIndicator']);
});

it('nest-redis-lock/opentelemetry exports its module, and nothing else', () => {
  expect(Object.keys(opentelemetry)).toEqual(['LockOpenTelemetryModule']);
});

it('nest-redis-lock/prometheus exports its module, and nothing else', () => {
  expect(Object.keys(prometheus)).toEqual(['LockPrometheusModule']);
});
