import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { lackOf, rights } from '../../lib/cli/doctor/rights.js';

const NAMES = { text: 't', set: 's', channel: 'c' };
const PATTERNS = { keys: '~lock:*', channels: '&wake:*' };

describe('The rights that doctor examines', () => {
  it('are those that docs/redis.md lists', () => {
    const [, rule = ''] = /^ACL SETUSER locks (.*)$/m.exec(readFileSync('docs/redis.md', 'utf8')) ?? [];
    const listed = rule.split(' ').filter((word) => word.startsWith('+'));
    // To subscribe is examined by a message.
    const examined = [...rights(NAMES).map(({ name }) => `+${name}`), '+subscribe'];
    expect(examined.sort()).toEqual(listed.sort());
  });

  it.each([
    ["NOPERM this user has no permissions to run the 'zadd' command", { right: '+zadd' }],
    ["NOPERM User locks has no permissions to run the 'zadd' command", { right: '+zadd' }],
    ['NOPERM this user has no permissions to access one of the keys used as arguments', { right: '~lock:*' }],
    ['NOPERM No permissions to access a key', { right: '~lock:*' }],
    ['NOPERM this user has no permissions to access one of the channels used as arguments', { right: '&wake:*' }],
    ['NOPERM No permissions to access a channel', { right: '&wake:*' }],
    ["ERR unknown command 'ZADD', with args beginning with:", { unknown: 'ZADD' }],
    ['MOVED 1 127.0.0.1:7000', undefined],
    ['NOSCRIPT No matching script.', undefined],
  ])('are read from what servers say: %s', (message, lack) => {
    expect(lackOf('zadd', new Error(message), PATTERNS)).toEqual(lack);
  });
});
