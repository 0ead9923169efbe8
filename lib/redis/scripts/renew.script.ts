import { LuaScript } from '../lua-script.js';
import { SHARED } from './locks/holders.lua.js';

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
export const RENEW = renewScript(`
local function holdersOf(i)
  return (string.find(KEYS[i], '{[^}]+}') and KEYS[i] or '{' .. KEYS[i] .. '}') .. ':holders'
end
`);

/**
 * The same for a cluster. Who shares a key is looked for only where its name is given too: where the slot moves from node to
 * node, Redis itself makes sure then that it has not been left behind.
 */
export const RENEW_IN_CLUSTER = renewScript(`
local function holdersOf(i)
  return KEYS[i + #ARGV / 2] or error(redis.error_reply('TRYAGAIN Who shares it may be elsewhere.'))
end
`);

function renewScript(holdersOf: string): LuaScript<RenewReply> {
  return new LuaScript<RenewReply>({
    source: `
-- KEYS[i]            a key; and in a cluster, after all of them, the holders of each in the same order, or none
-- ARGV[2i-1], [2i]   its token, its lease in ms
-- RETURNS            which i are not the token's any more, and of which that is not known; an error, if it is known of none
local call, gone, unknown, now = redis.call, {}, {}, nil
${holdersOf}
local function renewShared(i, token, lease)
  local key, holders = KEYS[i], holdersOf(i)
  if not now then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  local ends = redis.pcall('ZSCORE', holders, token)
  if type(ends) == 'table' and not string.find(ends.err, 'WRONGTYPE') then error(ends) end
  if type(ends) ~= 'string' or tonumber(ends) <= now then return false end
  -- Out of memory, Redis lets a script ZADD only after it has written something.
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  if tonumber(ends) < now + lease then call('ZADD', holders, now + lease, token) end
  for _, name in ipairs({key, holders}) do
    if call('PTTL', name) < tonumber(lease) then call('PEXPIRE', name, lease) end
  end
  return true
end

-- Answers whether it is still the token's.
local function renew(i, token, lease)
  local value = redis.pcall('GET', KEYS[i])
  if value == token then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
    return true
  end
  return type(value) == 'string' and string.sub(value, 1, ${SHARED.length}) == '${SHARED}' and renewShared(i, token, lease)
end

local failure
for i = 1, #ARGV / 2 do
  local done, answer = pcall(renew, i, ARGV[2 * i - 1], ARGV[2 * i])
  if not done then
    -- Redis before version 7 puts the place in the script before it.
    failure = string.gsub(type(answer) == 'table' and answer.err or answer, '^@user_script: ?%d+: %-?', '')
    unknown[#unknown + 1] = i
  elseif not answer then
    gone[#gone + 1] = i
  end
end
if failure and #unknown == #ARGV / 2 then return redis.error_reply(failure) end
return {gone, unknown}
`,
    decode(reply) {
      const [gone, unknown] = reply as [unknown[], unknown[]];
      return { gone: gone.map(Number), unknown: unknown.map(Number) };
    },
  });
}
