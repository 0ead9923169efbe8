import type { KeyView, Sharing } from '../../store/lock-store.js';
import { readKind } from '../lock-kind.js';
import { LuaScript } from '../lua-script.js';
import { LONGEST, SHARED } from './locks/holders.lua.js';

/** Reads who has a key and who waits for it, and changes nothing. */
export const INSPECT = new LuaScript<KeyView | undefined>({
  source: `
-- KEYS[1], KEYS[2]   the key, its queue
-- RETURNS            {what the key holds, ms it lasts, {token, ms its lease lasts, ..} of those who share it, live waiters in order}; or
--                    nothing, when it is free
local call, queue = redis.call, KEYS[2]
local value = call('GET', KEYS[1])
if not value then return false end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holders, waiters = {}, {}
if string.sub(value, 1, ${SHARED.length}) == '${SHARED}' then
  local found = call('ZRANGE', (string.gsub(queue, 'queue$', 'holders')), 0, -1, 'WITHSCORES')
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) > now then
      holders[#holders + 1] = found[i]
      holders[#holders + 1] = found[i + 1] - now
    end
  end
  if #holders == 0 then return false end
else
  value = string.sub(value, 1, ${LONGEST})
end
local alive = string.gsub(queue, 'queue$', 'alive')
for _, waiter in ipairs(call('ZRANGE', queue, 0, -1)) do
  local token = string.match(waiter, '^(%S+) %d+ %S+$')
  local aliveUntil = token and call('ZSCORE', alive, token)
  if aliveUntil and tonumber(aliveUntil) >= now then waiters[#waiters + 1] = waiter end
end
return {value, call('PTTL', KEYS[1]), holders, waiters}
`,
  decode(reply) {
    if (!Array.isArray(reply)) return undefined;
    const [value, lastsMs, sharing, waiters] = reply as [unknown, unknown, unknown[], unknown[]];
    const text = String(value);
    const isShared = text.startsWith(SHARED);
    const shared = Array.from({ length: sharing.length / 2 }, (_, index) => ({
      token: String(sharing[2 * index]),
      leaseLeftMs: Number(sharing[2 * index + 1]),
    }));
    return {
      sharing: isShared ? sharingOf(text.slice(SHARED.length)) : 'exclusive',
      holders: isShared ? shared : [{ token: text, leaseLeftMs: Number(lastsMs) === -1 ? Infinity : Number(lastsMs) }],
      waiters: waiters.map((waiter) => {
        const [token, , kind] = String(waiter).split(' ') as [string, string, string];
        return { token, ...readKind(kind) };
      }),
    };
  },
});

/** How a key is shared, as people are told: a reader that was made the writer has it for itself. */
function sharingOf(text: string): Sharing {
  const [how = ''] = text.split(' ', 1);
  return how.startsWith('write:') ? 'exclusive' : (how as Sharing);
}
