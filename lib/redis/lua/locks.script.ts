import type { Granted, Busy } from '../../store/lock-store.js';
import { LuaScript } from './lua-script.js';
import { LOCKS_SOURCE, LOCKS_IN_CLUSTER_SOURCE } from './sources.generated.js';

/** The key is shared by another number of permits. */
export interface OtherPermits {
  readonly permits: number;
}

/** What the script answers for one operation: see RETURNS. */
export type LocksReply = number | Busy | OtherPermits | Error;

/**
 * All that takes and gives locks: many operations in one call, one after the other. So what a process wants in one tick costs
 * one command, and "give mine back, then queue me again" is one step.
 *
 * - `try` takes all keys or none; `ask` does too, and tells the holder that it will be back. `queue` takes them in their order and queues for the first that it can't have; `run` is the
 *   same for a token that ends in `+`, `deaf` for a process that can't hear of its turn. `release` gives them back; `keep` lets
 *   them end after the time that stands for the lease; `cancel` leaves the queues too. `reserve` renews a lock and gives it new
 *   fences. `upgrade` makes a reader that is alone the writer, `downgrade` makes the writer a reader; in the place of the kind stands the number of the
 *   upgrade, counted by its holder: a `downgrade` ends all up to it (0: the writer came as one), so what comes late does nothing. `force` takes a key from
 *   a holder and tells it; who does so, and why, stands in the place of the kind. `shorten` lets what the token has end with the lease, be that nearer. `clock`, of
 *   no key and before all others, brings the note of the last fence up to the server's time, or to the number
 *   that stands for its lease if that is larger; `raise` brings it up to the number.
 * - An exclusive lock is its token under the key. A shared one is how it is shared under the key, and the tokens in a sorted
 *   set beside it, each with the end of its own lease. One that was given back, and stays for some time, stands there as its token and a mark:
 *   it is nobody's.
 * - Whoever gives a key back hands it to the first live waiter in the same step, and to those behind it that may share it; and
 *   tells that waiter's process on its one channel. If nobody listens there, the process is gone, or has just lost its
 *   subscription: the next waiter is taken, and this one keeps its place for as long as it counts as alive. Only one that said
 *   it is `deaf` is given the key all the same, for a moment: it finds it when it asks again.
 * - A free key with a queue, left by a holder that crashed, is its first waiter's, whoever asks.
 * - Fences count up from the server's time in µs. The note of the last one is brought up to that time when it is missing, and
 *   when the caller says so, which is after each reconnect and every second: so they grow across FLUSHALL and failover; and,
 *   as the note expires by the very clock it was set by, also when that clock is set back.
 */
export const LOCKS = locksScript(LOCKS_SOURCE);

/**
 * The same for a cluster. Who is given a key has it only for a moment, until it asks again: whether it lives is not known.
 * Its second key never exists: see `ClusterNames.absentIn`.
 *
 * @param wake what the names of all wake channels begin with
 */
export const clusterLocks = (wake: string): LuaScript<LocksReply> => locksScript(LOCKS_IN_CLUSTER_SOURCE(wake));

function locksScript(source: string): LuaScript<LocksReply> {
  return new LuaScript<LocksReply>({
    source,
    decode(reply) {
      if (reply instanceof Error) return reply;
      if (!Array.isArray(reply)) return wholeNumber(reply);
      const [holder, leaseLeftMs, ahead, fence] = reply as unknown[];
      if (reply.length === 1) return { permits: Number(String(holder).replace('permits:', '')) };
      if (wholeNumber(fence) instanceof Error) return nonsense(reply);
      return {
        granted: false,
        holder: String(holder),
        leaseLeftMs: Number(leaseLeftMs) === -1 ? Infinity : Number(leaseLeftMs),
        ahead: Number(ahead),
        fence: Number(fence),
      };
    },
  });
}

/** Reads the fence of a grant; undefined if there is none. */
export function grantOf(fence: number, fenceCount: number): Granted | undefined {
  return fence === 0 ? undefined : { granted: true, fence: Math.abs(fence), fenceCount, contended: fence < 0 };
}

/** Some settings of a client give numbers as text; anything else, such as the "QUEUED" of a transaction, must not pass for a grant. */
function wholeNumber(reply: unknown): number | Error {
  const number = Number(reply ?? NaN);
  return Number.isSafeInteger(number) ? number : nonsense(reply);
}

function nonsense(reply: unknown): Error {
  return new Error(`it answered what makes no sense: ${String(reply)}`);
}
