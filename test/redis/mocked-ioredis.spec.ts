import { expect, it, jest } from '@jest/globals';

jest.unstable_mockModule('ioredis', () => ({ default: class {}, Redis: undefined, Cluster: undefined }));

it('a test that mocks ioredis is told to replace the LockService, too', async () => {
  const { redisClient } = await import('../../lib/redis/connection/redis-client.js');
  expect(() => redisClient('redis://127.0.0.1:6379', 1000)).toThrow(/mocks the package "ioredis".*overrideProvider/);
});
