import { expect, it } from '@jest/globals';
import { AppModule } from '../../sample-app/app.module.js';
import { readOptions } from '../../sample-app/app.options.js';

it('without REDIS_URL the sample app takes the Redis of this machine', () => {
  const options = readOptions({ DATABASE_URL: 'postgres://127.0.0.1/accounts' });
  expect(options.redisUrl).toBe('redis://127.0.0.1:6379');
  expect(() => AppModule.register(options)).not.toThrow();
});
