import type { OwnedLock } from '../../store/lock-store.js';
import { LuaScript } from './lua-script.js';
import { RENEW_IN_CLUSTER_SOURCE, RENEW_SOURCE } from './sources.generated.js';

/** Which keys, by number from 1 on, don't belong to their tokens any more; and of which keys that is not known. */
export interface RenewReply {
  readonly gone: readonly number[];
  readonly unknown: readonly number[];
}

/** Renews many locks, each only while its token still holds the key. */
export const RENEW = renewScript(RENEW_SOURCE);

/** The same for the locks of one slot of a cluster. */
export const RENEW_IN_CLUSTER = renewScript(RENEW_IN_CLUSTER_SOURCE);

/** Writes whose lock is renewed, and as which writer, if it has to be one. */
export const renewedOwner = ({ token, upgrade }: Pick<OwnedLock, 'token' | 'upgrade'>): string =>
  upgrade ? `${token} ${upgrade}` : token;

function renewScript(source: string): LuaScript<RenewReply> {
  return new LuaScript<RenewReply>({
    source,
    decode(reply) {
      const [gone, unknown] = reply as [unknown[], unknown[]];
      return { gone: gone.map(Number), unknown: unknown.map(Number) };
    },
  });
}
