import { LuaScript } from './lua-script.js';
import { RENEW_SOURCE, RENEW_IN_CLUSTER_SOURCE } from './sources.generated.js';

/** Which of the keys that were asked for, from 1 on, are not their token's any more; and of which that is not known. */
export interface RenewReply {
  readonly gone: readonly number[];
  readonly unknown: readonly number[];
}

/**
 * Pushes out the expiry of many keys, each only where it still holds the token named for it. Never brings one nearer: of two
 * renewals whose answers cross or get lost, the longer one holds. A key that holds something else stops nobody, nor does one
 * that can't be renewed. Of a shared key it pushes out the token's own end, and that of the key as far as that needs.
 */
export const RENEW = renewScript(RENEW_SOURCE);

/**
 * The same for a cluster. Who shares a key is looked for only where its name is given too: where the slot moves from node to
 * node, Redis itself makes sure then that it has not been left behind.
 */
export const RENEW_IN_CLUSTER = renewScript(RENEW_IN_CLUSTER_SOURCE);

function renewScript(source: string): LuaScript<RenewReply> {
  return new LuaScript<RenewReply>({
    source,
    decode(reply) {
      const [gone, unknown] = reply as [unknown[], unknown[]];
      return { gone: gone.map(Number), unknown: unknown.map(Number) };
    },
  });
}
