import type { KeyView, Sharing } from '../../store/lock-store.js';
import { readKind } from '../wire/lock-kind.js';
import { SHARED } from './constants.js';
import { LuaScript, timeToLive } from './lua-script.js';
import { INSPECT_SOURCE } from './sources.generated.js';

/** Reads the holders and the waiters of a key. */
export const INSPECT = new LuaScript<KeyView | undefined>({
  source: INSPECT_SOURCE,
  decode(reply) {
    if (!Array.isArray(reply)) return undefined;
    const [value, ttl, sharing, waiters] = reply as [unknown, unknown, unknown[], unknown[]];
    const text = String(value);
    const isShared = text.startsWith(SHARED);
    const shared = Array.from({ length: sharing.length / 2 }, (_, index) => ({
      token: String(sharing[2 * index]),
      leaseLeftMs: Number(sharing[2 * index + 1]),
    }));
    return {
      sharing: isShared ? sharingOf(text.slice(SHARED.length)) : 'exclusive',
      holders: isShared ? shared : [{ token: text, leaseLeftMs: timeToLive(ttl) }],
      waiters: waiters.map((waiter) => {
        const [token, , kind] = String(waiter).split(' ') as [string, string, string];
        return { token, ...readKind(kind) };
      }),
    };
  },
});

/** How a key is shared, for callers: an upgraded reader has it alone. */
function sharingOf(text: string): Sharing {
  const [how = ''] = text.split(' ', 1);
  return how.startsWith('write:') ? 'exclusive' : (how as Sharing);
}
