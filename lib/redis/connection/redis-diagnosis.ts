import type { Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';

/** How a server says that the user lacks a right, also inside a script. */
const NO_RIGHT = /^NOPERM|user executing the script can't|ACL failure in script/;

/** Whether a server refused because the user lacks a right. */
export const lacksRight = (said: string): boolean => NO_RIGHT.test(said);

/** What to do about an error of a server or the network: the first pattern that matches. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/^NOAUTH/, 'It asks for a password: put it into "connection".'],
  [/^WRONGPASS|invalid password/, 'Look at the user and the password in "connection".'],
  [NO_RIGHT, 'Its user lacks rights: docs/redis.md has a list of those it needs.'],
  [
    /unknown command.{1,3}(EVAL|EVALSHA|SCRIPT)\b/i,
    'It runs no Lua scripts, which all locks need. Is it a proxy or a Sentinel? Connect to Redis itself.',
  ],
  [/unknown command.{1,3}SUBSCRIBE\b/i, 'This server or proxy has no pub/sub: connect to Redis itself.'],
  [/^READONLY/, 'It is a replica: give the master as "connection", or the Sentinels that know it.'],
  [
    /^NOREPLICAS/,
    'Fewer replicas follow it than its "min-replicas-to-write" asks for: ' +
      'look at them, and whether another one is the master now.',
  ],
  [/^OOM/, 'It is out of memory and evicts nothing: raise its "maxmemory", or delete something.'],
  [
    /unknown command.{1,3}WAITAOF/i,
    'Only Redis 7.2 or later, and Valkey, can wait for a disk: upgrade it, or leave out "durability.aof".',
  ],
  [
    /WAITAOF cannot be used when numlocal/,
    'It keeps no append-only file: set "appendonly yes", or leave out "durability.aof".',
  ],
  [/^MISCONF/, "It can't write to its disk: look at its log."],
  [/^BUSY /, 'It runs a slow script: wait, or look which one, and end it with "SCRIPT KILL".'],
  [/^LOADING/, 'It is reading its data from disk: wait, or look at its log.'],
  [
    /^(CLUSTERDOWN|MOVED|ASK|CROSSSLOT)/,
    'It is a node of a Redis Cluster: give an ioredis Cluster client as "connection", and look at "CLUSTER INFO".',
  ],
  [
    /DB index is out of range/,
    'There is no such database: look at its number in "connection", and at "databases" of the server.',
  ],
  [/cluster support disabled/, 'It is a single Redis: connect to it without a Cluster client.'],
  [
    /All sentinels are unreachable.*(NOAUTH|WRONGPASS)/s,
    'The Sentinels ask for a password of their own: look at "connection.sentinelPassword".',
  ],
  [/All sentinels are unreachable.*No such master/s, 'They know no such master: look at "connection.name".'],
  [
    /All sentinels are unreachable/,
    'No Sentinel answers: look at their hosts and ports in "connection", and whether they run.',
  ],
  [
    /max number of clients|EPIPE|ECONNRESET|Connection is closed|max retries per request|isn't writeable/,
    'It closes new connections: look at its "maxclients", at firewalls and proxies, ' +
      'and whether it wants TLS (rediss://), or a certificate of its clients.',
  ],
  [
    /alert (certificate (required|unknown)|bad certificate|unknown ca|handshake failure)/i,
    'It accepts no client without a certificate that it trusts: ' +
      'give one, "connection.tls.cert" and "connection.tls.key".',
  ],
  [
    /altnames/i,
    'Its certificate is for another host: connect to a name that it has, or give that as "connection.tls.servername".',
  ],
  [/certificate is not yet valid/, 'Look at the clock of this host, and from when on the certificate is valid.'],
  [/certificate has expired/, 'Renew the certificate of the server.'],
  [/certificate/i, 'Its certificate is not trusted: give the authority that signed it, "connection.tls.ca".'],
  [
    /TLS|SSL|socket disconnected before secure/,
    'Look whether this port speaks TLS; if not, use redis:// or leave out "tls".',
  ],
  [
    /Protocol error|Unknown RESP type/i,
    'What answers there is no Redis: look at the host and the port in "connection".',
  ],
  [/ENOTFOUND|EAI_AGAIN/, 'Look at the host name in "connection".'],
  [
    /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/,
    'Look at the host and the port in "connection", at the network and at firewalls.',
  ],
  [/./, 'Check that it runs and that "connection" is right.'],
];

/** Says what is wrong, and what to do about it. */
export function diagnosis(error: Error): string {
  const said = wordsOf(error);
  const about = error.cause instanceof Error ? wordsOf(error.cause) : said;
  const words = about === said ? said : `${said}: ${about}`;
  return `${words}. ${ADVICE.find(([pattern]) => pattern.test(about))![1]}`;
}

/**
 * Returns the words of an error, or its code when it has none; without the line of a script, which tells a reader
 * nothing.
 */
function wordsOf(error: NodeJS.ErrnoException): string {
  const words = saidBy(error) || error.code || 'unknown error';
  return words.replace(/ script: [0-9a-f]{40}, on @user_script:\d+\.?$/, '').replace(/\.$/, '');
}

/** What Redis 6 puts before the words: which script it ran, unless the script caught the error, and in which line. */
const PLACE_IN_SCRIPT =
  /^(?:ERR Error running script \(call to f_[0-9a-f]{40}\): )?(?:@user_script: ?\d+: )*-?(?=[A-Z]+ )/;

/** Returns what a server said. */
export function saidBy({ message }: Error): string {
  return message.replace(PLACE_IN_SCRIPT, '').trimEnd();
}

/**
 * Returns the error of a client library without the command that it attaches: that of the handshake holds the
 * password.
 */
export function withoutCommand(error: Error): Error {
  const { name, message, stack, lastNodeError } = error as Error & { readonly lastNodeError?: Error };
  if (!('command' in error) && !lastNodeError) return error;
  return Object.assign(new Error(message, lastNodeError && { cause: withoutCommand(lastNodeError) }), { name, stack });
}

/** What is known about a connection on which a call got no reply in time. */
interface Silence {
  /** When it was last made. */
  readonly connectedAt: number;
  readonly timeoutMs: number;
  readonly lastError: Error | undefined;
}

/**
 * Says why a call got no reply, as far as the state of the connection tells; otherwise returns the last error of the
 * client library.
 */
export function silence({ status, stream, options }: Redis, { connectedAt, timeoutMs, lastError }: Silence): Error {
  if (status === 'ready') return new Error(`it said nothing for ${timeoutMs} ms`);
  // It has been like this for a while: not just one more attempt that will fail like those before it.
  if (status === 'connect' && now() - connectedAt > timeoutMs / 2) {
    // The server replied to the handshake, and is not ready all the same.
    if (stream.bytesRead > 0) return new Error('LOADING Redis is loading its data, or not ready for another reason');
    return new Error(`it takes connections and says nothing for ${timeoutMs} ms: it hangs`);
  }
  // Of a client that the app lends, the last error may not be known. When an attempt begins, the stream is still that
  // of the one before.
  const isInHandshake = status === 'connecting' && stream?.connecting === false && !stream.destroyed;
  if (options.tls && (lastError ? lastError.message.includes('ETIMEDOUT') : isInHandshake))
    return new Error('the TLS handshake got no answer');
  return lastError ?? new Error(`no connection for ${timeoutMs} ms`);
}

/** Whether a client waits to connect again, as ioredis knows, but leaves out of its types. */
export const willReconnect = (redis: Redis): boolean =>
  Boolean((redis as unknown as { readonly reconnectTimeout: NodeJS.Timeout | null }).reconnectTimeout);
