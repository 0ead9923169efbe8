import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { diagnosis, silence } from '../../lib/redis/connection/redis-diagnosis.js';

describe('What to do about the words of a server', () => {
  it.each([
    ['SSL routines:ssl3_read_bytes:tlsv13 alert certificate required', '"connection.tls.cert"'],
    ['SSL routines:ssl3_read_bytes:ssl/tls alert handshake failure', '"connection.tls.cert"'],
    ['SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca', '"connection.tls.cert"'],
    ["Hostname/IP does not match certificate's altnames: Host: localhost.", '"connection.tls.servername"'],
    ['certificate is not yet valid', 'the clock of this host'],
    ['Protocol error, got "H" as reply type byte. Please report this.', 'no Redis'],
    ['Unknown RESP type byte "H". Please report this.', 'no Redis'],
    ['self-signed certificate in certificate chain', '"connection.tls.ca"'],
    ['SSL routines:ssl3_get_record:wrong version number', 'speaks TLS'],
    ['All sentinels are unreachable. Last error: NOAUTH Authentication required.', '"connection.sentinelPassword"'],
    ['All sentinels are unreachable. Last error: WRONGPASS invalid username-password pair', 'sentinelPassword"'],
    ['All sentinels are unreachable. Last error: ERR No such master with that name', '"connection.name"'],
    ['All sentinels are unreachable. Last error: connect ECONNREFUSED', 'whether they run'],
  ])('%s: %s', (words, advice) => {
    expect(diagnosis(new Error(words))).toContain(advice);
  });
});

describe('What the state of a connection over TLS says when no call gets a reply', () => {
  it.each([
    ['the server is connected, and the handshake is not over', false, 'the TLS handshake got no answer'],
    ['the next attempt begins, and the connection is still the one that failed', true, 'no connection for 800 ms'],
  ])('when %s', (_state, destroyed, words) => {
    const redis = { status: 'connecting', stream: { connecting: false, destroyed }, options: { tls: {} } };
    const known = { connectedAt: 0, timeoutMs: 800, lastError: undefined };
    expect(silence(redis as unknown as Redis, known).message).toBe(words);
  });
});
