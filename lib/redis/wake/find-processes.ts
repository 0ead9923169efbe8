import { detailOf } from '../../errors/lock.error.js';
import type { FoundProcesses, Unreached } from '../../store/lock-store.js';
import type { Connection } from '../connection/connection.js';
import { RefusedError } from '../connection/connection-errors.js';

interface Search extends FoundProcesses {
  /** Whether no server can be reached. */
  readonly isDown: boolean;
}

/** Finds the processes that listen on a wake channel, without a look at the keys. Never rejects. */
export async function findProcesses(redis: Pick<Connection, 'commandOnAll'>, channelPrefix: string): Promise<Search> {
  const replies = await redis.commandOnAll('PUBSUB', 'CHANNELS', `${escaped(channelPrefix)}*`);
  const sources = new Set<string>();
  const unreached: Unreached[] = [];
  for (const { server, reply } of replies) {
    if (reply instanceof Error) unreached.push(notSearched(server, reply));
    else for (const channel of reply as readonly unknown[]) sources.add(String(channel).slice(channelPrefix.length));
  }
  const unavailable = unreached.filter(({ reason }) => reason === 'unavailable');
  return { sources: [...sources], unreached, isDown: unavailable.length > 0 && unavailable.length === replies.length };
}

/** What is missing while this process has no subscription to a server. */
export function unsubscribedFrom(server: string): Unreached {
  return {
    what: 'server',
    name: server,
    reason: 'unsubscribed',
    message:
      `This process has no subscription to Redis at ${server} at the moment, so it can't hear what other processes ` +
      'answer. Try again, and look at its log.',
  };
}

/** Escapes what has a meaning in a pattern of Redis. */
const escaped = (text: string): string => text.replaceAll(/[*?[\]\\]/g, '\\$&');

function notSearched(server: string, error: Error): Unreached {
  const isForbidden = error instanceof RefusedError && /^NOPERM/.test(error.reply);
  return {
    what: 'server',
    name: server,
    reason: isForbidden ? 'forbidden' : 'unavailable',
    message: isForbidden
      ? `The user of this app may not look for its processes on Redis at ${server}, so the others were not asked. ` +
        'Give it the right "+pubsub|channels".'
      : `The processes that listen on Redis at ${server} could not be found. ${detailOf(error)}`,
  };
}
