import { afterEach, expect, it, jest } from '@jest/globals';

afterEach(() => void jest.resetModules());

it.each([
  ['only a default export', undefined],
  ['an empty class', class {}],
  [
    'a class with some methods',
    class {
      on() {}
      defineCommand() {}
      options = {};
    },
  ],
  ['a function', jest.fn()],
  ['a function that makes an object', jest.fn(() => ({ on: jest.fn(), get: jest.fn() }))],
])('a test that mocks ioredis is told to replace the LockService, too: %s', async (_mock, Redis) => {
  jest.unstable_mockModule('ioredis', () => ({ default: class {}, Redis, Cluster: undefined }));
  const { redisClient } = await import('../../lib/redis/connection/redis-client.js');
  for (const connection of ['redis://127.0.0.1:6379', { host: '127.0.0.1' }])
    expect(() => redisClient(connection, 1000)).toThrow(/mocks the package "ioredis".*overrideProvider/);
});
