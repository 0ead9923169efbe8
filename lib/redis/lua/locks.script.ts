import type { Busy, Granted } from '../../store/lock-store.js';
import { LuaScript, timeToLive } from './lua-script.js';
import { LOCKS_IN_CLUSTER_SOURCE, LOCKS_SOURCE } from './sources.generated.js';

/** The key is shared by another number of permits. */
export interface OtherPermits {
  readonly permits: number;
}

/** What the script returns for one operation: see RETURNS in locks.lua. */
export type LocksReply = number | Busy | OtherPermits | Error;

/** Acquires and releases locks. */
export const LOCKS = locksScript(LOCKS_SOURCE);

/**
 * The same for a cluster.
 *
 * @param wakeChannels what the names of all wake channels begin with
 */
export const locksInCluster = (wakeChannels: string): LuaScript<LocksReply> =>
  locksScript(LOCKS_IN_CLUSTER_SOURCE(wakeChannels));

function locksScript(source: string): LuaScript<LocksReply> {
  return new LuaScript<LocksReply>({
    source,
    decode(reply) {
      if (reply instanceof Error) return reply;
      if (!Array.isArray(reply)) return wholeNumber(reply);
      const [holder, leaseLeftMs, ahead, fence] = reply as unknown[];
      if (reply.length === 1) return { permits: Number(String(holder).replace('permits:', '')) };
      if (wholeNumber(fence) instanceof Error) return unexpected(reply);
      return {
        granted: false,
        holder: String(holder),
        leaseLeftMs: timeToLive(leaseLeftMs),
        ahead: Number(ahead),
        fence: Number(fence),
      };
    },
  });
}

/**
 * Reads the short reply to many operations that were all done: the fence before the first that they got. Undefined for
 * any other reply.
 */
export function fenceBefore(reply: unknown, operationCount: number): number | undefined {
  if (operationCount <= 2 || !Array.isArray(reply) || reply.length !== 2) return undefined;
  const [count, before] = (reply as unknown[]).map(wholeNumber);
  return count === operationCount && typeof before === 'number' ? before : undefined;
}

/** Reads the fence of a grant; undefined if there is none. */
export function grantOf(fence: number, fenceCount: number): Granted | undefined {
  return fence === 0 ? undefined : { granted: true, fence: Math.abs(fence), fenceCount, contended: fence < 0 };
}

/**
 * Reads a number, which a client returns as text in some settings. Anything else, such as the "QUEUED" of a
 * transaction, must not pass for a grant.
 */
function wholeNumber(reply: unknown): number | Error {
  const number = Number(reply ?? NaN);
  return Number.isSafeInteger(number) ? number : unexpected(reply);
}

function unexpected(reply: unknown): Error {
  return new Error(`unexpected reply: ${String(reply)}`);
}
