import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { notDone } from '../connection/connection-errors.js';
import type { Call } from '../connection/plain-call.js';
import { diagnosis, withoutCommand } from '../connection/redis-diagnosis.js';

/** What may be wrong with a client that is connected, and what with one that has connected and waits. */
const DOWN_OR_SLOW =
  'the node of this key is down or slow, or its slot is being moved. ' +
  'Look at "CLUSTER INFO" and at the load of the nodes, or raise "commandTimeout".';
const NO_LIMIT =
  'the client waits for a node that does not say how the cluster is, and sends nothing to any other. ' +
  'Look which node hangs, and give the client "redisOptions: { commandTimeout: 1000 }", so that it asks another one.';

const NO_NODE = 'no node answers. Look at the hosts and ports in the client, and whether the nodes run.';

/** Whether it is all that ioredis tells of a node that it could not connect to. */
const saysNothing = ({ message }: Error): boolean => message === 'Connection is closed.';

/** Says why a client could not connect, and what to do about it. */
export const notConnected = (error: Error): string => (saysNothing(error) ? NO_NODE : diagnosis(error));

/** The error of a call to a node that is silent. */
export function silentNode(node: string, call: Call): LockUnavailableError {
  const said = `node ${node} of the Redis Cluster says nothing`;
  const advice = 'Look whether it hangs, at its load, and why no replica has taken over.';
  return notDone(call, `The ${said}; another call is probing it now. ${advice}`, new Error(said));
}

/**
 * The error of a call that the cluster did not run in time.
 *
 * @param status that of the client; `closed` when the library has closed its connection
 */
export function unreachable(
  call: Pick<Call, 'sent'>,
  status: string,
  timeoutMs: number,
  lastError: Error | undefined,
): LockUnavailableError {
  if (status === 'closed') return notDone(call, 'The connection to the Redis Cluster has been closed.', lastError);
  const late = `The Redis Cluster did not run the command within ${timeoutMs} ms: `;
  if (status !== 'ready' && lastError && saysNothing(lastError)) return notDone(call, late + NO_NODE, lastError);
  const said = lastError ? ` It said: ${diagnosis(lastError)}` : '';
  return notDone(call, late + wrongWith(status) + said, lastError);
}

/** Adds to the error of a call that was too late how many of its slots it had: it takes one after the other. */
export function withSlotsTaken(late: LockUnavailableError, taken: number, slots: number): LockUnavailableError {
  if (taken === 0) return late;
  return new LockUnavailableError(
    `${late.detail} ${taken} of the ${slots} slots of this call were taken by then, one after the other.`,
    late.cause,
  );
}

function wrongWith(status: string): string {
  if (status === 'connect') return NO_LIMIT;
  return status === 'ready' ? DOWN_OR_SLOW : NO_NODE;
}

/** Whether it says that a reply did not come in time, by the library's time-out or by that of the client. */
export const isLate = (error: Error): boolean =>
  error instanceof LockUnavailableError || error.message === 'Command timed out';

/** The error of a node that did not reply: it was too slow, or can't be connected to. */
export const noReply = (error: Error): LockUnavailableError =>
  new LockUnavailableError(isLate(error) ? 'It did not reply in time.' : diagnosis(error), withoutCommand(error));
