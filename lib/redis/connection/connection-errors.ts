import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { Call } from './plain-call.js';
import { diagnosis, saidBy, withoutCommand } from './redis-diagnosis.js';

/** The command never left this process, so it can't have changed anything. */
export class NotSentError extends LockUnavailableError {}

/** The app has its client in use for something else: nothing tells when it is back. */
export class NotAskedError extends NotSentError {}

/** The server replied with an error. */
export class RefusedError extends LockUnavailableError {
  /** The server's own words. */
  readonly reply: string;

  constructor(message: string, cause: Error) {
    super(message, cause);
    this.reply = saidBy(cause);
  }
}

/**
 * How a server refuses a call because one of its operations met something unforeseen, or has a key that the user may
 * not use. Other errors are about the server as a whole.
 */
const ABOUT_ONE = /^(ERR|WRONGTYPE|NOPERM.* key|user_script:)/;

/** Whether the error of a call may be about one of its operations only, so that each is to be sent alone. */
export const mayBeAboutOne = (error: unknown, operations: readonly unknown[]): boolean =>
  operations.length > 1 && error instanceof RefusedError && ABOUT_ONE.test(error.reply);

/**
 * How a server refuses a call that may be about its keys: one is no lock, lies elsewhere, or may not be used. An ERR
 * may be anything, but that a script "can't run" a command concerns all calls.
 */
const OF_ITS_KEYS = /^(WRONGTYPE|CROSSSLOT|MOVED|ASK|NOPERM.* key|user_script:|ERR(?!.* can't run ))/;

/** Whether the server refused a call for what it asks of its keys. */
export const mayBeOfItsKeys = ({ reply }: RefusedError): boolean => OF_ITS_KEYS.test(reply);

/** The error of a call that did not get through: it tells whether the command may have run. */
export function notDone({ sent }: Pick<Call, 'sent'>, message: string, cause?: Error): LockUnavailableError {
  return sent ? new LockUnavailableError(message, cause) : new NotSentError(message, cause);
}

/** The error of a call that can't go over the app's client now. */
export function notAsked({ sent }: Pick<Call, 'sent'>, server: string, problem: string): LockUnavailableError {
  const message = `Redis at ${server} was not asked: ${problem}`;
  return sent ? new LockUnavailableError(message) : new NotAskedError(message);
}

/** The error of a call that the server refused. */
export function refusedBy(server: string, error: Error): RefusedError {
  if (error.message.includes('WRONGTYPE')) {
    return new RefusedError(
      'The key of this lock holds something in Redis that is not a lock. ' +
        'Another program uses the same name: change "keyPrefix".',
      error,
    );
  }
  return new RefusedError(`Redis at ${server} refused the command: ${diagnosis(error)}`, withoutCommand(error));
}

/** The error of a call that got no reply in time. */
export function noReplyOf(server: string, timeoutMs: number, cause: Error): LockUnavailableError {
  return new LockUnavailableError(
    `Redis at ${server} did not reply within ${timeoutMs} ms. ` +
      'Look at its load and the network, or raise "commandTimeout".',
    cause,
  );
}
