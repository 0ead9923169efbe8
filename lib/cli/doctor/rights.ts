/** A right that a user of Redis needs, and a harmless command that shows whether it has it. */
interface Right {
  /** As `ACL SETUSER` writes it, without `+`. */
  readonly name: string;
  readonly command: readonly (string | number)[];
}

/** The names that the commands use: a key for a moment, one that no command makes, and a channel without listeners. */
export interface ScratchNames {
  readonly text: string;
  readonly set: string;
  readonly channel: string;
}

const NO_SCRIPT = '0'.repeat(40);
const SOON_MS = 5000;

/**
 * All rights that `docs/redis.md` lists, but for those of special cases. Without the right to set a key, the commands
 * make none.
 */
export const rights = ({ text, set, channel }: ScratchNames): readonly Right[] => [
  { name: 'set', command: ['SET', text, 0, 'PX', SOON_MS] },
  { name: 'get', command: ['GET', text] },
  { name: 'exists', command: ['EXISTS', text] },
  { name: 'incrby', command: ['INCRBY', text, 'no number'] },
  { name: 'pttl', command: ['PTTL', text] },
  { name: 'zadd', command: ['ZADD', set, 'XX', 0, 'doctor'] },
  { name: 'pexpire', command: ['PEXPIRE', set, SOON_MS] },
  { name: 'zrange', command: ['ZRANGE', set, 0, 0] },
  { name: 'zrangebyscore', command: ['ZRANGEBYSCORE', set, 0, 0] },
  { name: 'zrank', command: ['ZRANK', set, 'doctor'] },
  { name: 'zscore', command: ['ZSCORE', set, 'doctor'] },
  { name: 'zcard', command: ['ZCARD', set] },
  { name: 'zremrangebyscore', command: ['ZREMRANGEBYSCORE', set, 1, 1] },
  { name: 'zrem', command: ['ZREM', set, 'doctor'] },
  { name: 'del', command: ['DEL', text] },
  { name: 'eval', command: ['EVAL', 'return 1', 0] },
  { name: 'evalsha', command: ['EVALSHA', NO_SCRIPT, 0] },
  { name: 'time', command: ['TIME'] },
  { name: 'publish', command: ['PUBLISH', channel, ''] },
  { name: 'pubsub|numsub', command: ['PUBSUB', 'NUMSUB', channel] },
  { name: 'pubsub|channels', command: ['PUBSUB', 'CHANNELS', channel] },
  { name: 'hello', command: ['HELLO'] },
  { name: 'client|setname', command: ['CLIENT', 'SETNAME', 'nest-redis-lock'] },
  { name: 'info', command: ['INFO', 'server'] },
  { name: 'ping', command: ['PING'] },
  { name: 'wait', command: ['WAIT', 0, 1] },
];

/** The rights that a Redis Cluster needs besides. */
export const CLUSTER_RIGHTS: readonly Right[] = [
  { name: 'cluster|info', command: ['CLUSTER', 'INFO'] },
  { name: 'asking', command: ['ASKING'] },
];

/** What a user lacks, in the words of `ACL SETUSER`. */
export type Lack = { readonly right: string } | { readonly unknown: string };

/**
 * Reads from the reply to a command what the user lacks. Any other error says that it may: the server checks rights
 * first.
 */
export function lackOf(
  name: string,
  error: Error,
  patterns: { readonly keys: string; readonly channels: string },
): Lack | undefined {
  if (/unknown (?:sub)?command/i.test(error.message)) return { unknown: name.replace('|', ' ').toUpperCase() };
  if (!error.message.startsWith('NOPERM')) return undefined;
  if (/access (?:a|one of the) channel/i.test(error.message)) return { right: patterns.channels };
  if (/access (?:a|one of the) key/i.test(error.message)) return { right: patterns.keys };
  return { right: `+${name}` };
}
