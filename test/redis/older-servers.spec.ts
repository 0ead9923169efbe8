import { describe, expect, it } from '@jest/globals';
import { redisClient } from '../../lib/redis/connection/redis-client.js';
import { refusedBy } from '../../lib/redis/connection/connection-errors.js';

/** As Redis 6.2 says what went wrong in a script. */
const inScript = (words: string) =>
  new Error(`ERR Error running script (call to f_${'0a'.repeat(20)}): @user_script:12: ${words}`);

describe('What Redis 6.2 says of an error in a script', () => {
  it.each([
    [
      "@user_script: 12: -READONLY You can't write against a read only replica.",
      "READONLY You can't write against a read only replica",
      'It is a replica',
    ],
    [
      "@user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.   ",
      "OOM command not allowed when used memory > 'maxmemory'",
      'It is out of memory',
    ],
    [
      '@user_script: 12: -MISCONF Redis is configured to save RDB snapshots',
      'MISCONF Redis is configured to save RDB snapshots',
      "It can't write to its disk",
    ],
    [
      'ERR value is not an integer or out of range',
      'ERR value is not an integer or out of range',
      'Check that it runs',
    ],
  ])('is told as newer servers say it: %s', (words, told, advice) => {
    const { detail, reply } = refusedBy('there', inScript(words));
    expect(detail).toContain(`Redis at there refused the command: ${told}. ${advice}`);
    expect(reply).toMatch(new RegExp(`^${told.split(' ')[0]} `));
  });

  it('stays an error of one operation when the script itself is at fault', () => {
    expect(refusedBy('there', inScript('user_script:12: attempt to compare nil with number')).reply).toMatch(/^ERR /);
  });

  it('makes the client look for another master', () => {
    const { redis } = redisClient({ host: '127.0.0.1' }, 1000);
    const looks = redis.options.reconnectOnError!;
    expect(looks(inScript("@user_script: 12: -READONLY You can't write against a read only replica."))).toBe(true);
    expect(
      looks(new Error("READONLY You can't write against a read only replica. script: 0a, on @user_script:1.")),
    ).toBe(true);
    expect(looks(inScript('ERR value is not an integer or out of range'))).toBe(false);
  });
});
