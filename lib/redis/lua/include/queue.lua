local function aliveOf(i)
  return (string.gsub(KEYS[i + 1], 'queue$', 'alive'))
end

-- Answers whether it was in the queue.
local function leave(i, token, lease, kind)
  if call('ZREM', KEYS[i + 1], token .. ' ' .. lease .. ' ' .. kind) == 0 then return false end
  call('ZREM', aliveOf(i), token)
  if guesses and call('EXISTS', KEYS[i + 1]) == 0 then call('DEL', aliveOf(i)) end -- and what suspect() noted
  return true
end

-- Notes since when somebody has KEYS[i] who may not have heard of it: as a waiter that can't be one. Whoever has the key and
-- asks for it takes that note away.
local function suspect(i)
  local since = call('ZSCORE', aliveOf(i), '?')
  if since and now - since < DEAF_LEASE_MS then return end
  call('ZADD', aliveOf(i), now, '?')
  call('PEXPIRE', aliveOf(i), QUEUE_TTL_MS)
end

-- Whether a waiter has been silent since somebody was given KEYS[i] who never asked for it: who lives has asked meanwhile.
local function isSilent(i, aliveUntil)
  local since = call('ZSCORE', aliveOf(i), '?')
  return since and now - since >= DEAF_LEASE_MS and aliveUntil - ALIVE_MS < tonumber(since)
end

-- The token, lease and kind of a waiter, and what it wants. Nothing for what is none: left there, it would fail all who come by.
local function readWaiter(waiter)
  local token, lease, kind = string.match(waiter, '^(%S+) (%d+) (%S+)$')
  if not token or #lease > 13 or tonumber(lease) < 1 then return nil end
  local wants = string.match(kind, '^[^/]*')
  if wants == 'exclusive' or wants == 'read' or string.find(wants, '^permits:%d+$') then return token, lease, kind, wants end
end

local let, called = {}, {} -- by queue: how many were let in to share its key; and whether one in it was called
local dropped = 0 -- how many waiters that are gone, in this call

-- Lets a waiter further behind ask for KEYS[i], and so let in those before it. If it can't be told, one of them asks before long.
local function callFrom(i, at, asker)
  if called[KEYS[i + 1]] then return end
  called[KEYS[i + 1]] = true
  local waiter = call('ZRANGE', KEYS[i + 1], at, at)[1] or call('ZRANGE', KEYS[i + 1], -1, -1)[1]
  local token = waiter and readWaiter(waiter)
  if token and token ~= asker then tell(token, 'called ' .. token) end
end

-- Takes one that is gone from the queue of KEYS[i]. Answers false after many: then the next call goes on.
local function drop(i, waiter, token, lease, kind)
  if dropped >= MOST_PASSED then return false end
  dropped = dropped + 1
  if token then leave(i, token, lease, kind) else call('ZREM', KEYS[i + 1], waiter) end
  return true
end

-- Lets the last in the queue of KEYS[i] go on with what is too much for this call, and answers 'more'. Nothing, if nobody in it is alive: then all of it is dropped.
local function goOn(i, asker)
  local last = call('ZRANGE', aliveOf(i), -1, -1, 'WITHSCORES')[2]
  if not last or tonumber(last) < now then
    call('DEL', KEYS[i + 1], aliveOf(i))
    return nil
  end
  callFrom(i, -1, asker)
  return 'more'
end

-- Gives KEYS[i], whose state is given, to its live waiters in their order, as long as the next of them may have it. Stops at
-- the asker, and after many: Redis does nothing else meanwhile. Answers the new state, and whether somebody who comes before
-- the asker has to wait; 'more', if that is not known yet.
local function handOver(i, asker, value, sharing, count)
  local queue, alive, at, portion, before, silent = KEYS[i + 1], aliveOf(i), 0, 1, let[KEYS[i + 1]] or 0, nil
  while true do
    local waiters = call('ZRANGE', queue, at, at + portion - 1)
    for w = 1, #waiters do
      local token, lease, kind, wants = readWaiter(waiters[w])
      if token and token == asker then
        if (let[queue] or 0) > before then callFrom(i, at + MOST_AT_ONCE, asker) end
        return value, sharing, count
      end
      local aliveUntil = token and tonumber(call('ZSCORE', alive, token) or 0)
      if not token or aliveUntil < now or (guesses and isSilent(i, aliveUntil)) then
        if not drop(i, waiters[w], token, lease, kind) then return value, sharing, count, goOn(i, asker) end
      else
        local deaf, heard, others = aliveUntil % 1 ~= 0, false, nil
        local channel = not (silent and silent[sourceOf(token)]) and channelOf(token)
        if deaf or channel then
          if value and not joins(wants, sharing, count) then return value, sharing, count, true end
          if value and (let[queue] or 0) >= MOST_AT_ONCE then
            callFrom(i, at + MOST_AT_ONCE, asker)
            return value, sharing, count, true
          end
          others = call('ZCARD', queue) > 1 and 1 or 0
          local granted = string.format('granted %s %s %s %.0f %d ', token, lease, kind, fenceFor(token), others)
          heard = channel and say(channel, granted .. KEYS[i])
        end
        if heard or deaf then
          leave(i, token, lease, kind)
          give(i, token, math.min(lease, heard == true and FIRST_LEASE_MS or DEAF_LEASE_MS), wants)
          if guesses and others == 1 then suspect(i) end
          if wants == 'exclusive' then return token end
          value, sharing, count = true, wants, (count or 0) + 1
          let[queue] = (let[queue] or 0) + 1
        elseif at < MOST_PASSED then
          silent = silent or {} -- all of its process are, but for those who are deaf
          silent[sourceOf(token)] = true
          at = at + 1
        elseif not drop(i, waiters[w], token, lease, kind) then
          return value, sharing, count, goOn(i, asker)
        end
      end
    end
    if #waiters < portion then return value, sharing, count end
    portion = PORTION
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
  else
    -- Out of memory, Redis lets a script do what the next waiter needs only after it has written something.
    call('DEL', KEYS[i])
    handOver(i)
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
-- {holder, ms its lease lasts}, which are '' and 0 when it is to ask again at once.
local function obstacle(i, token, wants)
  local value, sharing, count = state(i)
  if type(value) == 'table' then return value end
  if value and has(i, token, value, sharing) then return false end
  if sharing and sharing ~= wants and string.find(sharing, '^permits') and string.find(wants, '^permits') then return {sharing} end
  local waits
  if (sharing or not value) and call('EXISTS', KEYS[i + 1]) == 1 then value, sharing, count, waits = handOver(i, token, value, sharing, count) end
  if waits == 'more' then return {'', 0} end
  if not waits and (not value or joins(wants, sharing, count)) then return nil end
  if not sharing then return {string.sub(value, 1, LONGEST), call('PTTL', KEYS[i])} end
  -- A permit is free when the first of them ends, all of it when the last one does.
  local which = sharing == wants and 0 or -1
  local holder = call('ZRANGE', holdersOf(i), which, which, 'WITHSCORES')
  return {holder[1], math.max(0, holder[2] - now)}
end

-- Answers how many are before it, and a fence that every later grant is above.
local function join(i, token, lease, kind, holder, deaf)
  local queue, alive, waiter, asked = KEYS[i + 1], aliveOf(i), token .. ' ' .. lease .. ' ' .. kind, mint(1)
  local joined = call('ZADD', queue, 'NX', asked, waiter)
  call('ZADD', alive, now + ALIVE_MS + (deaf and 0.5 or 0), token)
  call('PEXPIRE', queue, QUEUE_TTL_MS)
  call('PEXPIRE', alive, QUEUE_TTL_MS)
  if joined == 1 and string.sub(holder, -1) == RUN_MARK and call('ZCARD', queue) == 1 then
    tell(holder, 'wanted ' .. holder)
  end
  return call('ZRANK', queue, waiter), asked
end
