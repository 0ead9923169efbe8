import { expect, it } from '@jest/globals';
import { readEnvironment, readGivenEnvironment } from '../../sample-app/src/config/environment.js';

const DATABASE_URL = 'postgres://127.0.0.1/accounts';

it('the sample app needs a database and nothing else', () => {
  const environment = readEnvironment({ DATABASE_URL, REDIS_URL: '', PORT: '' });
  expect(environment).toMatchObject({ DATABASE_URL, PORT: '3000' });
  expect(environment.REDIS_URL).toBeUndefined();
});

it('the sample app says which environment variables are wrong, all at once', () => {
  const wrong = { REDIS_URL: 'localhost:6379', PORT: '65536', OPS_PASSWORD: 'short', DEMO_UNSAFE: 'yes' };
  expect(() => readEnvironment(wrong)).toThrow(
    new Error(
      [
        'DATABASE_URL is not set. Set it, or run `npm start`, which brings its own database.',
        'REDIS_URL must look like redis://user:password@host:6379',
        'PORT is "65536", but must be a number from 0 to 65535',
        'OPS_PASSWORD must have 8 characters or more',
        'DEMO_UNSAFE must be 1, or not set',
      ].join('\n'),
    ),
  );
});

it('the launcher needs nothing, and checks what it is given', () => {
  expect(readGivenEnvironment({})).toMatchObject({ PORT: '3000' });
  expect(() => readGivenEnvironment({ DATABASE_URL: 'mysql://127.0.0.1' })).toThrow(
    new Error('DATABASE_URL must look like postgres://user:password@host:5432/database'),
  );
});
