import { describe, expect, it } from '@jest/globals';
import { inOwnWords } from '../../lib/cli/own-words.js';
import { diagnosis } from '../../lib/redis/connection/redis-diagnosis.js';

describe('On the command line', () => {
  it.each([
    ['connect ECONNREFUSED 127.0.0.1:1', 'Check that it runs and that --redis is right.'],
    ['self-signed certificate', 'give the authority that signed it, NODE_EXTRA_CA_CERTS.'],
    ['All sentinels are unreachable: NOAUTH Authentication required', 'look at "?sentinelPassword=" in the URL.'],
    ['All sentinels are unreachable: ERR No such master', 'look at the name of the master in the URL.'],
  ])('what to do about "%s" names what one can change there', (said, advice) => {
    expect(inOwnWords(diagnosis(new Error(said)), true)).toContain(advice);
  });

  it('what a command waits for is named as its option', () => {
    expect(inOwnWords('It is held. Set "wait" to wait for it.', true)).toBe('It is held. Set --wait to wait for it.');
  });

  it('a duration is not said to be a number', () => {
    const said = '"wait" is "1h30m", but must be a duration: a number of milliseconds or a string such as "250ms".';
    expect(inOwnWords(said, true)).toBe('--wait is "1h30m", but must be a duration: such as "250ms".');
  });

  it('where the server is named by the environment, advice names the variable', () => {
    expect(inOwnWords('Look at "connection".', false)).toBe('Look at REDIS_URL.');
  });
});
