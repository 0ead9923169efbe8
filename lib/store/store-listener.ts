import type { ForcedUnlock } from '../errors/lock-lost.error.js';
import type { LockDetails } from './key-view.js';
import type { Granted } from './lock-command.js';
import type { ProcessQuestion } from './process-question.js';

/** Receives what a store reports to the waiters and holders of a process. */
export interface StoreListener {
  /** The beginning of all tokens of this listener, up to the last dot. */
  readonly source: string;
  /** The store granted the lock to a waiter. Returns false when the token is not one of its waiters. */
  granted(token: string, grant: Granted): boolean;
  /**
   * A waiter must ask for the lock again: it was granted it, or is to be granted it now. Returns false when the token
   * is not one of its waiters.
   */
  offered(token: string): boolean;
  /**
   * A lock is contended: another process waits for it. Reported for tokens that end in `+`, and by stores whose waiters
   * poll.
   */
  contended(token: string): void;
  /** The lock of a token was released by force. */
  forceReleased(token: string, forced: ForcedUnlock): void;
  /**
   * Describes the lock of a token, which belongs to its present holder alone from now on; undefined when it is not held
   * here.
   */
  describe(token: string): LockDetails | undefined;
  /**
   * Answers a question of another process, of which nothing is checked yet. Never throws. Returns what can become JSON;
   * undefined when it does not know that kind of question.
   */
  answer(question: ProcessQuestion): unknown;
  /** Messages or locks may have been lost: waiters ask again, holders verify. */
  resync(): void;
}
