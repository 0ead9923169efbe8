import { now } from '../../clock/deadline.js';
import { waitFor } from '../../clock/wait-for.js';
import type { Busy, Granted } from '../lock-store.js';
import type { QuorumAttempt } from './quorum-attempt.js';
import type { QuorumTurns } from './quorum-turns.js';

/**
 * For how long a caller that does not wait tries again after collisions, in ms, and as a part of the lease: that counts
 * from the first try on.
 */
const LONGEST_MS = 500;
const LONGEST_PART = 1 / 2;

/** One attempt of a caller, and its outcome. */
export interface Try {
  readonly attempt: Pick<QuorumAttempt, 'hasCollided'>;
  readonly reply: Promise<Granted | Busy>;
}

/**
 * Tries again after collisions, for a caller that does not wait: callers that ask at the same moment may get a minority
 * each. If all of them took that for "held", none would get the key.
 */
export async function untilDecided(
  tryOnce: () => Try,
  turns: Pick<QuorumTurns, 'delayAfterCollision'>,
  leaseMs: number,
): Promise<Granted | Busy> {
  const until = now() + Math.min(LONGEST_MS, leaseMs * LONGEST_PART);
  for (let collisions = 1; ; collisions++) {
    const { attempt, reply } = tryOnce();
    const result = await reply;
    if (result.granted || !attempt.hasCollided) return result;
    const nextAt = now() + turns.delayAfterCollision(collisions);
    if (nextAt > until) return result;
    await waitFor<void>(
      nextAt,
      [],
      () => undefined,
      () => undefined,
    );
  }
}
