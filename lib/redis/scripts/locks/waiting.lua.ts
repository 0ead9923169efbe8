import { ALIVE_MS, RUN_MARK } from '../../../store/lock-store.js';

/** How long a waiter is given the key, in ms, that can't be told, or of which that is not known: it asks again before that. */
const DEAF_LEASE_MS = 2_000;

/** The queue of a key, and how it moves on. */
export const WAITING = `
local function aliveOf(i)
  return (string.gsub(KEYS[i + 1], 'queue$', 'alive'))
end

-- Answers whether it was in the queue.
local function leave(i, token, lease, kind)
  if call('ZREM', KEYS[i + 1], token .. ' ' .. lease .. ' ' .. kind) == 0 then return false end
  call('ZREM', aliveOf(i), token)
  return true
end

-- Gives KEYS[i], whose state is given, to its live waiters in their order, as long as the next of them may have it. Stops at
-- the asker. Answers the new state, and whether somebody who comes before the asker has to wait.
local function handOver(i, asker, value, sharing, count)
  local queue, at = KEYS[i + 1], 0
  while true do
    local waiter = call('ZRANGE', queue, at, at)[1]
    if not waiter then return value, sharing, count end
    local token, lease, kind = string.match(waiter, '^(.*) (%d+) (%S+)$')
    if token == asker then return value, sharing, count end
    local wants = string.match(kind, '^[^/]*')
    local aliveUntil = tonumber(call('ZSCORE', aliveOf(i), token) or 0)
    local deaf = aliveUntil % 1 ~= 0
    if aliveUntil < now then
      leave(i, token, lease, kind)
    elseif value and not joins(wants, sharing, count) then
      if deaf or channelOf(token) then return value, sharing, count, true end
      at = at + 1
    else
      local others = call('ZCARD', queue) > 1 and 1 or 0
      local heard = tell(token, string.format('granted %s %s %s %.0f %d %s', token, lease, kind, fenceFor(token), others, KEYS[i]))
      if heard or deaf then
        leave(i, token, lease, kind)
        give(i, token, heard == true and lease or math.min(lease, ${DEAF_LEASE_MS}), wants)
        if wants == 'exclusive' then return token end
        value, sharing, count = true, wants, (count or 0) + 1
      else
        at = at + 1
      end
    end
  end
end

-- Takes KEYS[i] from the token, and hands it over. Answers 0 when it was not the token's.
local function free(i, token)
  local value, sharing, count = state(i)
  if not has(i, token, value, sharing) then return 0 end
  if sharing then
    call('ZREM', holdersOf(i), token)
    lastWithHolders(i, value)
    value, count = count > 1 and value, count - 1
    handOver(i, nil, value, sharing, count)
  elseif not handOver(i) then
    call('DEL', KEYS[i])
  end
  return 1
end

-- Takes the token from the queue of KEYS[i], and KEYS[i] from it. Those behind it may be able to share it now.
local function giveUp(i, token, lease, kind)
  local left, freed = leave(i, token, lease, kind), free(i, token)
  if left and freed == 0 then handOver(i, nil, state(i)) end
  return freed
end

-- What keeps the token from KEYS[i]: nothing (false: it has it already); an error; {permits that others were given}; or
-- {holder, ms its lease lasts}.
local function obstacle(i, token, wants)
  local value, sharing, count = state(i)
  if type(value) == 'table' then return value end
  if value and has(i, token, value, sharing) then return false end
  if sharing and sharing ~= wants and string.find(sharing, '^permits') and string.find(wants, '^permits') then return {sharing} end
  local waits
  if (sharing or not value) and call('EXISTS', KEYS[i + 1]) == 1 then value, sharing, count, waits = handOver(i, token, value, sharing, count) end
  if not waits and (not value or joins(wants, sharing, count)) then return nil end
  if not sharing then return {value, call('PTTL', KEYS[i])} end
  -- A permit is free when the first of them ends, all of it when the last one does.
  local which = sharing == wants and 0 or -1
  local holder = call('ZRANGE', holdersOf(i), which, which, 'WITHSCORES')
  return {holder[1], math.max(0, holder[2] - now)}
end

-- Answers how many are before it, and a fence that every later grant is above.
local function join(i, token, lease, kind, holder, deaf)
  local queue, alive, waiter, asked = KEYS[i + 1], aliveOf(i), token .. ' ' .. lease .. ' ' .. kind, mint(1)
  local joined = call('ZADD', queue, 'NX', asked, waiter)
  call('ZADD', alive, now + ${ALIVE_MS} + (deaf and 0.5 or 0), token)
  call('PEXPIRE', queue, ${2 * ALIVE_MS})
  call('PEXPIRE', alive, ${2 * ALIVE_MS})
  if joined == 1 and string.sub(holder, -1) == '${RUN_MARK}' and call('ZCARD', queue) == 1 then
    tell(holder, 'wanted ' .. holder)
  end
  return call('ZRANK', queue, waiter), asked
end
`;
