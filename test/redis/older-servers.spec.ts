import { describe, expect, it } from '@jest/globals';
import { redisClient } from '../../lib/redis/connection/redis-client.js';
import { refusedBy } from '../../lib/redis/connection/connection-errors.js';

/** As Redis 6.2 says what went wrong in a script. */
const inScript = (words: string) =>
  new Error(`ERR Error running script (call to f_${'0a'.repeat(20)}): @user_script:12: ${words}`);

/** The same when the script caught it, and returned it as the reply to one operation. */
const caughtInScript = (words: string) => new Error(words);

describe('An error in a script as Redis 6.2 reports it', () => {
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
  ])('an error reads as newer servers report it: %s', (words, told, advice) => {
    for (const error of [inScript(words), caughtInScript(words)]) {
      const { detail, reply } = refusedBy('there', error);
      expect(detail).toContain(`Redis at there refused the command: ${told}. ${advice}`);
      expect(reply).toMatch(new RegExp(`^${told.split(' ')[0]} `));
    }
  });

  it('an error of the script itself stays an error of one operation', () => {
    expect(refusedBy('there', inScript('user_script:12: attempt to compare nil with number')).reply).toMatch(/^ERR /);
  });

  it('a READONLY error makes the client find another master', () => {
    const { redis } = redisClient({ host: '127.0.0.1' }, 1000);
    const looks = (error: Error): unknown => {
      redis.emit('connect');
      return redis.options.reconnectOnError!(error);
    };
    const words = "@user_script: 12: -READONLY You can't write against a read only replica.";
    expect(looks(inScript(words))).toBe(true);
    expect(looks(caughtInScript(words))).toBe(true);
    expect(
      looks(new Error("READONLY You can't write against a read only replica. script: 0a, on @user_script:1.")),
    ).toBe(true);
    expect(looks(inScript('ERR value is not an integer or out of range'))).toBe(false);
  });

  it('READONLY errors make the client reconnect once for each connection: the client keeps a record of each', () => {
    const { redis } = redisClient({ host: '127.0.0.1' }, 1000);
    const looks = () => redis.options.reconnectOnError!(new Error('READONLY'));
    expect([looks(), looks(), looks()]).toEqual([true, false, false]);
    redis.emit('connect');
    expect([looks(), looks()]).toEqual([true, false]);
  });
});
