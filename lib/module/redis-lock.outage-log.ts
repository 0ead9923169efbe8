import { detailOf } from '../errors/lock.error.js';
import type { Log } from '../log/safe-log.js';
import { shownDuration, type OutageReporter } from '../service/outage-reporter.js';
import type { OutageLog } from '../redis/connection/outage-log.js';
import { diagnosis } from '../redis/connection/redis-diagnosis.js';

/**
 * Logs the outages of Redis. An outage of a single Redis is logged together with the calls that fail; each node of a
 * quorum has lines of its own.
 *
 * @param nodes how many Redis servers the module uses
 */
export function redisOutageLog(logger: Log, outage: OutageReporter, nodes: number): OutageLog {
  const { subscriptions } = outage;
  const isQuorum = nodes > 1;
  const consequence = isQuorum
    ? `Locks go on while ${(nodes + 1) / 2} of the ${nodes} nodes work.`
    : 'Calls that need a lock fail until it is back.';
  const meanwhile = isQuorum
    ? `While ${(nodes + 1) / 2} of the ${nodes} nodes have none, this app lets others try after each lock, ` +
      'and hears late that a lock was taken by force.'
    : 'Until it is back, waiters poll about once a second.';
  const unheard = isQuorum
    ? 'holders are not told that others wait, or that a lock was taken by force'
    : 'waiters are not told of their turn, and poll about once a second';
  return {
    down: (server, cause) => {
      subscriptions.serverDown(server);
      const line = `Redis at ${server} can't be reached: ${diagnosis(cause)} ${consequence}`;
      if (isQuorum) logger.warn(line);
      else outage.begin(line, server);
    },
    up: (server) => {
      const line = `Redis at ${server} can be reached again`;
      const downMs = subscriptions.serverUp(server);
      if (isQuorum) logger.log(`${line}, after ${shownDuration(downMs)}.`);
      else outage.end(line, server);
    },
    unsubscribed: (server, cause) => {
      const reason = cause ? `: ${diagnosis(cause)}` : '.';
      const line =
        `The subscription at Redis at ${server}, which tells this app about its locks, ` +
        `is down${reason} ${meanwhile}`;
      subscriptions.unsubscribed(server, line);
    },
    subscribed: (server) => subscriptions.subscribed(server, `The subscription at Redis at ${server} is back.`),
    mute: (server, error) =>
      logger.warn(`Redis at ${server} does not let this app publish, so ${unheard}. ${detailOf(error)}`),
    deserted: (server) =>
      logger.warn(
        `The app's client gets no reply from Redis at ${server}, but a new connection does: ` +
          'that of the client is dead, or a command blocks it. Locks go on over the new one. ' +
          'Give the client "socketTimeout", so that the app\'s own commands do not wait either.',
      ),
    unfit: (server, problem) => logger.warn(`Redis at ${server} should not keep locks: ${problem}`),
  };
}
