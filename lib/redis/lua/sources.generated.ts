/* eslint-disable max-lines */
// Written by "npm run lua" from the .lua files of this folder. Change those.
import {
  ALIVE_MS,
  DEAF_LEASE_MS,
  FENCES,
  FENCES_OF_A_RUN,
  FIRST_LEASE_MS,
  KEPT_MARK,
  LONGEST,
  LONGEST_VERB,
  MOST_AT_ONCE,
  MOST_PASSED,
  PORTION,
  QUEUE_TTL_MS,
  RUN_MARK,
  SHARED,
  SHARED_LENGTH,
  SHARED_READ,
  SHARED_READ_AND,
  SHARED_WRITE,
  SHARING_PATTERN,
  lua,
} from './constants.js';

export const HOLDERS_OF_SOURCE: string = `
-- KEYS[1], KEYS[2]   the key, its queue
-- RETURNS            the SHA1 of the token of who holds it, or the tokens of all who share it
local value = redis.call('GET', KEYS[1])
if not value then return {} end
if string.sub(value, 1, ${lua(SHARED_LENGTH)}) ~= ${lua(SHARED)} then return {redis.sha1hex(value)} end
local time = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', (string.gsub(KEYS[2], 'queue$', 'holders')), '(' .. time[1] * 1000 + math.floor(time[2] / 1000), '+inf')
`;

export const INSPECT_SOURCE: string = `
-- KEYS[1], KEYS[2]   the key, its queue
-- RETURNS            {what the key holds, ms it lasts, {token, ms its lease lasts, ..} of those who share it, live waiters in order}; or
--                    nothing, when it is free
local call, queue = redis.call, KEYS[2]
local value = call('GET', KEYS[1])
if not value then return false end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holders, waiters = {}, {}
if string.sub(value, 1, ${lua(SHARED_LENGTH)}) == ${lua(SHARED)} then
  local found = call('ZRANGE', (string.gsub(queue, 'queue$', 'holders')), 0, -1, 'WITHSCORES')
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) > now then
      holders[#holders + 1] = found[i]
      holders[#holders + 1] = found[i + 1] - now
    end
  end
  if #holders == 0 then return false end
else
  value = string.sub(value, 1, ${lua(LONGEST)})
end
local alive = string.gsub(queue, 'queue$', 'alive')
for _, waiter in ipairs(call('ZRANGE', queue, 0, -1)) do
  local token = string.match(waiter, '^(%S+) %d+ %S+$')
  local aliveUntil = token and call('ZSCORE', alive, token)
  if aliveUntil and tonumber(aliveUntil) >= now then waiters[#waiters + 1] = waiter end
end
return {value, call('PTTL', KEYS[1]), holders, waiters}
`;

export const LOCKS_IN_CLUSTER_SOURCE = (WAKE_CHANNELS: string): string => `
-- KEYS[1]    the note of the last fence
-- KEYS[2]    in a cluster: a key that never exists
-- KEYS[..]   for each operation and each of its keys: the key, its queue ("…:queue"; beside it are "…:alive" and "…:holders")
-- ARGV[..]   for each operation: what (and of how many keys, and which kind with which label: "queue 2 read/report"), token, lease in ms
-- RETURNS    for each operation (without an array around it when there is only one)
--            try, ask, queue, run, deaf     fence (negative: others are queued), or {holder, ms its lease lasts, waiters ahead, fence so far},
--                                      or {"permits:n"} when it is shared by another number
--            reserve, upgrade          fence, or 0: not the token's any more, or not alone
--            all others                how many keys were the token's
local call, note, replies, first, a = redis.call, KEYS[1], {}, 3, 1

local behind, noteLasts -- what the note is still to be brought up to; and how long it is to last then, in ms
if ARGV[1] == 'clock' or ARGV[1] == 'raise' then
  local least, time = ARGV[3], call('TIME')
  time = time[1] * 1000000 + time[2]
  if ARGV[1] == 'clock' then least = string.format('%.0f', math.max(least, time)) end
  -- Without it, fences begin at the time again: so it must be there until that is past it.
  noteLasts = string.format('%.0f', 86400000 + math.max(0, least - time) / 1000)
  -- What can't be counted on, as somebody else has written it, is as good as gone: the time is above all that were given.
  local last = redis.pcall('GET', note)
  last = last == false and 0 or type(last) == 'string' and string.find(last, '^%d+$') and tonumber(last)
  if (not last or last >= 2^53 or last < tonumber(least)) and redis.pcall('SET', note, least, 'PX', noteLasts).err then behind = least end
  a = 4
end

local calls = (#ARGV - a + 1) / 3
if not behind and #KEYS == first - 1 + 2 * calls then
  local queues = KEYS
  if calls > 1 then
    queues = {}
    for i = 1, calls do queues[i] = KEYS[first + 2 * i - 1] end
  end
  if (calls == 1 and call('EXISTS', queues[first + 1]) or call('EXISTS', unpack(queues))) == 0 then
    local fences, granted = 0, {}
    while a <= #ARGV do
      local what, token = ARGV[a], ARGV[a + 1]
      if #what > ${lua(LONGEST_VERB)} then what = string.match(what, '^(%a+) 1 exclusive/') or what end
      if what == 'queue' or what == 'run' or what == 'try' or what == 'ask' then
        local set = redis.pcall('SET', KEYS[first], token, 'NX', 'PX', ARGV[a + 2])
        if not set or set.err then break end
        granted[#granted + 1] = #replies + 1
        replies[#replies + 1] = fences + 1
        fences = fences + ((what == 'run' or (what == 'ask' and string.sub(token, -1) == ${lua(RUN_MARK)})) and ${lua(FENCES_OF_A_RUN)} or ${lua(FENCES)})
      elseif what == 'release' and redis.pcall('GET', KEYS[first]) == token then
        replies[#replies + 1] = call('DEL', KEYS[first])
      else
        break
      end
      first = first + 2
      a = a + 3
    end
    if fences > 0 then
      local before = call('INCRBY', note, fences) - fences
      if before <= 0 then -- the note was missing, or not ours
        local time = call('TIME')
        call('SET', note, string.format('%.0f', time[1] * 1000000 + time[2] + fences), 'PX', 86400000)
        before = time[1] * 1000000 + time[2]
      end
      for i = 1, #granted do replies[granted[i]] = replies[granted[i]] + before end
    end
    if a > #ARGV then return calls == 1 and replies[1] or replies end
  end
end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Brings the note up after all. Out of memory, Redis refuses that until something has been written, such as the DEL of a release.
local function bringUp()
  if not behind then return end
  call('SET', note, behind, 'PX', noteLasts)
  behind = nil
end

-- Answers the first of so many new fences.
local function mint(count)
  bringUp()
  local last = call('INCRBY', note, count)
  if last <= count then
    call('SET', note, string.format('%.0f', time[1] * 1000000 + time[2]), 'PX', 86400000)
    last = call('INCRBY', note, count)
  end
  return last - count + 1
end

local function fenceFor(token)
  return mint(string.sub(token, -1) == ${lua(RUN_MARK)} and ${lua(FENCES_OF_A_RUN)} or ${lua(FENCES)})
end

local function holdersOf(i)
  return (string.gsub(KEYS[i + 1], 'queue$', 'holders'))
end

-- What KEYS[i] holds (false: nothing; a table: an error); and when it is shared, how, and by how many whose leases last.
local function state(i)
  local value = redis.pcall('GET', KEYS[i])
  local sharing = type(value) == 'string' and string.match(value, ${lua(SHARING_PATTERN)})
  if not sharing then return value end
  local holders = holdersOf(i)
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local count = call('ZCARD', holders)
  if count > 0 then return value, sharing, count end
  call('DEL', KEYS[i])
  return false
end

-- Whether the token has KEYS[i], whose state is given.
local function has(i, token, value, sharing)
  if sharing then return call('ZSCORE', holdersOf(i), token) and true end
  return value == token
end

-- Whether one more may have it who wants to share it like this.
local function joins(wants, sharing, count)
  if wants ~= sharing then return false end
  return wants == 'read' or count < tonumber(string.match(wants, '%d+'))
end

-- Lets a shared KEYS[i] last as long as the longest lease of those who share it; drops it with the last of them.
local function lastWithHolders(i, value)
  local last = call('ZRANGE', holdersOf(i), -1, -1, 'WITHSCORES')[2]
  if not last then return call('DEL', KEYS[i]) end
  call('SET', KEYS[i], value, 'PX', last - now)
  call('PEXPIRE', holdersOf(i), last - now)
end

-- Gives the free KEYS[i], or a part of the shared one.
local function give(i, token, lease, wants)
  if wants == 'exclusive' then return call('SET', KEYS[i], token, 'PX', lease) end
  local fresh, value = ${lua(SHARED)} .. wants, call('GET', KEYS[i])
  if not value or string.match(value, '^%S*') ~= fresh then
    value = fresh
    call('DEL', holdersOf(i))
  end
  call('ZADD', holdersOf(i), now + lease, token)
  lastWithHolders(i, value)
end

-- Pushes the end of what the token has of KEYS[i] out, never nearer, and leaves the rest as it is: it may ask late.
local function extend(i, token, lease)
  local value, sharing = state(i)
  if not sharing then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
  elseif tonumber(call('ZSCORE', holdersOf(i), token)) < now + lease then
    call('ZADD', holdersOf(i), now + lease, token)
    lastWithHolders(i, value)
  end
end

local guesses = true -- who has heard

local function sourceOf(token)
  return string.match(token, '^(.*)%.') or ''
end

local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  return source and ${lua(WAKE_CHANNELS)} .. source
end

-- Answers 'maybe', if there was no error.
local function say(channel, message)
  return type(redis.pcall('PUBLISH', channel, message)) == 'number' and 'maybe'
end

local function tell(token, message)
  local channel = channelOf(token)
  return channel and say(channel, message)
end

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
  if since and now - since < ${lua(DEAF_LEASE_MS)} then return end
  call('ZADD', aliveOf(i), now, '?')
  call('PEXPIRE', aliveOf(i), ${lua(QUEUE_TTL_MS)})
end

-- Whether a waiter has been silent since somebody was given KEYS[i] who never asked for it: who lives has asked meanwhile.
local function isSilent(i, aliveUntil)
  local since = call('ZSCORE', aliveOf(i), '?')
  return since and now - since >= ${lua(DEAF_LEASE_MS)} and aliveUntil - ${lua(ALIVE_MS)} < tonumber(since)
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
  if dropped >= ${lua(MOST_PASSED)} then return false end
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
        if (let[queue] or 0) > before then callFrom(i, at + ${lua(MOST_AT_ONCE)}, asker) end
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
          if value and (let[queue] or 0) >= ${lua(MOST_AT_ONCE)} then
            callFrom(i, at + ${lua(MOST_AT_ONCE)}, asker)
            return value, sharing, count, true
          end
          others = call('ZCARD', queue) > 1 and 1 or 0
          local granted = string.format('granted %s %s %s %.0f %d ', token, lease, kind, fenceFor(token), others)
          heard = channel and say(channel, granted .. KEYS[i])
        end
        if heard or deaf then
          leave(i, token, lease, kind)
          give(i, token, math.min(lease, heard == true and ${lua(FIRST_LEASE_MS)} or ${lua(DEAF_LEASE_MS)}), wants)
          if guesses and others == 1 then suspect(i) end
          if wants == 'exclusive' then return token end
          value, sharing, count = true, wants, (count or 0) + 1
          let[queue] = (let[queue] or 0) + 1
        elseif at < ${lua(MOST_PASSED)} then
          silent = silent or {} -- all of its process are, but for those who are deaf
          silent[sourceOf(token)] = true
          at = at + 1
        elseif not drop(i, waiters[w], token, lease, kind) then
          return value, sharing, count, goOn(i, asker)
        end
      end
    end
    if #waiters < portion then return value, sharing, count end
    portion = ${lua(PORTION)}
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
  if not sharing then return {string.sub(value, 1, ${lua(LONGEST)}), call('PTTL', KEYS[i])} end
  -- A permit is free when the first of them ends, all of it when the last one does.
  local which = sharing == wants and 0 or -1
  local holder = call('ZRANGE', holdersOf(i), which, which, 'WITHSCORES')
  return {holder[1], math.max(0, holder[2] - now)}
end

-- Answers how many are before it, and a fence that every later grant is above.
local function join(i, token, lease, kind, holder, deaf)
  local queue, alive, waiter, asked = KEYS[i + 1], aliveOf(i), token .. ' ' .. lease .. ' ' .. kind, mint(1)
  local joined = call('ZADD', queue, 'NX', asked, waiter)
  call('ZADD', alive, now + ${lua(ALIVE_MS)} + (deaf and 0.5 or 0), token)
  call('PEXPIRE', queue, ${lua(QUEUE_TTL_MS)})
  call('PEXPIRE', alive, ${lua(QUEUE_TTL_MS)})
  if joined == 1 and string.sub(holder, -1) == ${lua(RUN_MARK)} and call('ZCARD', queue) == 1 then
    tell(holder, 'wanted ' .. holder)
  end
  return call('ZRANK', queue, waiter), asked
end

local function granted(last, fence)
  for i = first, last, 2 do
    if call('EXISTS', KEYS[i + 1]) == 1 then return -fence end
  end
  return fence
end

-- Lets what the token has of KEYS[i] end after so long. Answers 0 when it is not the token's.
local function shorten(i, token, lease)
  local value, sharing = state(i)
  if not has(i, token, value, sharing) then return 0 end
  if not sharing then return call('PEXPIRE', KEYS[i], lease) end
  call('ZADD', holdersOf(i), now + lease, token)
  lastWithHolders(i, value)
  return 1
end

local function take(verb, last, token, lease, kind)
  local wants = string.match(kind, '^[^/]*')
  local whole = verb == 'try' or verb == 'ask'
  if whole then
    for i = first, last, 2 do
      local found = obstacle(i, token, wants)
      if found then
        if found[2] then
          if verb == 'ask' then tell(found[1], 'wanted ' .. found[1]) end
          found[3], found[4] = call('ZCARD', KEYS[i + 1]), 0
        end
        return found
      end
    end
  end
  for i = first, last, 2 do
    local found = obstacle(i, token, wants)
    if found then
      -- Whatever it has of later keys, it would hold them out of order: that is how callers deadlock.
      for later = i + 2, last, 2 do
        giveUp(later, token, lease, kind)
      end
      if found[2] then
        -- What it has already it keeps for no longer than it counts as alive: it may stand still while it waits.
        for earlier = first, i - 2, 2 do
          shorten(earlier, token, math.min(lease, ${lua(ALIVE_MS)}))
        end
        found[3], found[4] = join(i, token, lease, kind, found[1], verb == 'deaf')
      else
        giveUp(i, token, lease, kind)
      end
      return found
    end
    if found == false then
      if guesses then call('ZREM', aliveOf(i), '?') end
      extend(i, token, lease)
    else
      give(i, token, lease, wants)
    end
    leave(i, token, lease, kind)
  end
  return granted(last, fenceFor(token))
end

local function reserve(last, token, lease)
  for i = first, last, 2 do
    if redis.pcall('GET', KEYS[i]) ~= token then return 0 end
  end
  for i = first, last, 2 do extend(i, token, lease) end
  return granted(last, mint(${lua(FENCES_OF_A_RUN)}))
end

-- Which upgrade made the one who has a key its writer (0: none, it came as one). Nothing for one who shares it.
local function upgradeOf(sharing)
  return sharing and tonumber(string.match(sharing, '^write:(%d+)$')) or (not sharing and 0 or nil)
end

-- Lets a holder's part of KEYS[i] end after so long. From here on it is not the token's any more: whatever it asked for may come late.
local function keep(i, token, lease)
  local value, sharing = state(i)
  local kept = token .. ${lua(KEPT_MARK)}
  if has(i, kept, value, sharing) then return 1 end
  if not has(i, token, value, sharing) then return 0 end
  if not sharing then
    -- Out of memory, Redis lets a script SET only after it has written something.
    call('PEXPIRE', KEYS[i], lease)
    call('SET', KEYS[i], kept, 'PX', lease)
    return 1
  end
  call('ZREM', holdersOf(i), token)
  call('ZADD', holdersOf(i), now + lease, kept)
  if upgradeOf(sharing) then value = ${lua(SHARED_READ)} end
  lastWithHolders(i, value)
  if upgradeOf(sharing) then handOver(i, nil, value, 'read', 1) end
  return 1
end

-- The last upgrade of the token that is noted to be over.
local function lastOver(value, token)
  for number, who in string.gmatch(value, ' (%d+) (%S+)') do
    if who == token then return tonumber(number) end
  end
  return 0
end

-- Notes on KEYS[i], which the token reads, that its upgrades up to this one are over. Forgets those of tokens that are gone.
local function noteOver(i, token, number)
  local value = call('GET', KEYS[i])
  if lastOver(value, token) >= number then return end
  local noted = ${lua(SHARED_READ_AND)} .. number .. ' ' .. token
  for other, who in string.gmatch(value, ' (%d+) (%S+)') do
    if who ~= token and call('ZSCORE', holdersOf(i), who) then noted = noted .. ' ' .. other .. ' ' .. who end
  end
  lastWithHolders(i, noted)
end

-- A reader that is alone becomes the writer, unless this upgrade is over already, or a later one has begun: then it comes late.
local function upgrade(last, token, lease, number)
  number = tonumber(number)
  local refused = false
  for i = first, last, 2 do
    local value, sharing, count = state(i)
    local before = upgradeOf(sharing)
    if not has(i, token, value, sharing) then
      refused = true
    elseif before then
      refused = refused or before > number
    else
      refused = refused or sharing ~= 'read' or count > 1 or lastOver(value, token) >= number
    end
  end
  for i = first, last, 2 do
    local value, sharing = state(i)
    if not refused then
      local lasts = math.max(lease, call('PTTL', KEYS[i]))
      call('DEL', holdersOf(i))
      call('ZADD', holdersOf(i), now + lasts, token)
      lastWithHolders(i, ${lua(SHARED_WRITE)} .. number)
    elseif sharing == 'read' and has(i, token, value, sharing) then
      noteOver(i, token, number)
    end
  end
  return refused and 0 or granted(last, fenceFor(token))
end

-- The writer becomes a reader, and lets in the readers that come next; unless a later upgrade made it the writer.
local function downgrade(i, token, _, number)
  local value, sharing = state(i)
  if not has(i, token, value, sharing) then return 0 end
  local writing = upgradeOf(sharing)
  number = tonumber(number) or 0
  if writing and writing > number then return 1 end
  if not sharing then give(i, token, call('PTTL', KEYS[i]), 'read') end
  if sharing == 'read' or writing then noteOver(i, token, number) end
  if writing then handOver(i, nil, true, 'read', 1) end
  return 1
end

-- Takes KEYS[i] from a holder: from one that shares it by its token, else from the token with this SHA1; and tells it who did so, and why.
local function force(i, token, _, forced)
  local value, sharing = state(i)
  if not sharing then
    if type(value) ~= 'string' or redis.sha1hex(value) ~= token then return 0 end
    token = value
  end
  tell(token, 'lost ' .. token .. ' ' .. forced)
  return free(i, token)
end

local onEach = { release = free, cancel = giveUp, keep = keep, downgrade = downgrade, force = force, shorten = shorten }
local onAll = { reserve = reserve, upgrade = upgrade }

-- What is met in a key that is no lock, or for want of memory, concerns only those who ask for that key; any other error all of the call.
local wrong
local function attempt(does, ...)
  local done, reply = pcall(does, ...)
  if done then return reply end
  local said = {err = type(reply) == 'table' and reply.err or reply}
  if not string.find(said.err, 'WRONGTYPE') and not string.find(said.err, 'OOM') then wrong = said end
  return said
end

while a <= #ARGV do
  local what, token, lease, reply = ARGV[a], ARGV[a + 1], ARGV[a + 2], nil
  local verb, count, kind = string.match(what, '^(%a+) ?(%d*) ?(%S*)$')
  local last = first + 2 * ((tonumber(count) or 1) - 1)
  if kind == '' then kind = 'exclusive' end
  if onAll[verb] then
    reply = attempt(onAll[verb], last, token, lease, kind)
  elseif onEach[verb] then
    reply = 0
    for i = first, last, 2 do
      local one = attempt(onEach[verb], i, token, lease, kind)
      if type(one) == 'table' then reply = one elseif type(reply) == 'number' then reply = reply + one end
    end
  else
    reply = attempt(take, verb, last, token, lease, kind)
  end
  if wrong then return wrong end
  replies[#replies + 1] = reply
  first = last + 2
  a = a + 3
end
bringUp()
return #replies == 1 and replies[1] or replies
`;

export const LOCKS_SOURCE: string = `
-- KEYS[1]    the note of the last fence
-- KEYS[2]    in a cluster: a key that never exists
-- KEYS[..]   for each operation and each of its keys: the key, its queue ("…:queue"; beside it are "…:alive" and "…:holders")
-- ARGV[..]   for each operation: what (and of how many keys, and which kind with which label: "queue 2 read/report"), token, lease in ms
-- RETURNS    for each operation (without an array around it when there is only one)
--            try, ask, queue, run, deaf     fence (negative: others are queued), or {holder, ms its lease lasts, waiters ahead, fence so far},
--                                      or {"permits:n"} when it is shared by another number
--            reserve, upgrade          fence, or 0: not the token's any more, or not alone
--            all others                how many keys were the token's
local call, note, replies, first, a = redis.call, KEYS[1], {}, 2, 1

local behind, noteLasts -- what the note is still to be brought up to; and how long it is to last then, in ms
if ARGV[1] == 'clock' or ARGV[1] == 'raise' then
  local least, time = ARGV[3], call('TIME')
  time = time[1] * 1000000 + time[2]
  if ARGV[1] == 'clock' then least = string.format('%.0f', math.max(least, time)) end
  -- Without it, fences begin at the time again: so it must be there until that is past it.
  noteLasts = string.format('%.0f', 86400000 + math.max(0, least - time) / 1000)
  -- What can't be counted on, as somebody else has written it, is as good as gone: the time is above all that were given.
  local last = redis.pcall('GET', note)
  last = last == false and 0 or type(last) == 'string' and string.find(last, '^%d+$') and tonumber(last)
  if (not last or last >= 2^53 or last < tonumber(least)) and redis.pcall('SET', note, least, 'PX', noteLasts).err then behind = least end
  a = 4
end

local calls = (#ARGV - a + 1) / 3
if not behind and #KEYS == first - 1 + 2 * calls then
  local queues = KEYS
  if calls > 1 then
    queues = {}
    for i = 1, calls do queues[i] = KEYS[first + 2 * i - 1] end
  end
  if (calls == 1 and call('EXISTS', queues[first + 1]) or call('EXISTS', unpack(queues))) == 0 then
    local fences, granted = 0, {}
    while a <= #ARGV do
      local what, token = ARGV[a], ARGV[a + 1]
      if #what > ${lua(LONGEST_VERB)} then what = string.match(what, '^(%a+) 1 exclusive/') or what end
      if what == 'queue' or what == 'run' or what == 'try' or what == 'ask' then
        local set = redis.pcall('SET', KEYS[first], token, 'NX', 'PX', ARGV[a + 2])
        if not set or set.err then break end
        granted[#granted + 1] = #replies + 1
        replies[#replies + 1] = fences + 1
        fences = fences + ((what == 'run' or (what == 'ask' and string.sub(token, -1) == ${lua(RUN_MARK)})) and ${lua(FENCES_OF_A_RUN)} or ${lua(FENCES)})
      elseif what == 'release' and redis.pcall('GET', KEYS[first]) == token then
        replies[#replies + 1] = call('DEL', KEYS[first])
      else
        break
      end
      first = first + 2
      a = a + 3
    end
    if fences > 0 then
      local before = call('INCRBY', note, fences) - fences
      if before <= 0 then -- the note was missing, or not ours
        local time = call('TIME')
        call('SET', note, string.format('%.0f', time[1] * 1000000 + time[2] + fences), 'PX', 86400000)
        before = time[1] * 1000000 + time[2]
      end
      for i = 1, #granted do replies[granted[i]] = replies[granted[i]] + before end
    end
    if a > #ARGV then return calls == 1 and replies[1] or replies end
  end
end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Brings the note up after all. Out of memory, Redis refuses that until something has been written, such as the DEL of a release.
local function bringUp()
  if not behind then return end
  call('SET', note, behind, 'PX', noteLasts)
  behind = nil
end

-- Answers the first of so many new fences.
local function mint(count)
  bringUp()
  local last = call('INCRBY', note, count)
  if last <= count then
    call('SET', note, string.format('%.0f', time[1] * 1000000 + time[2]), 'PX', 86400000)
    last = call('INCRBY', note, count)
  end
  return last - count + 1
end

local function fenceFor(token)
  return mint(string.sub(token, -1) == ${lua(RUN_MARK)} and ${lua(FENCES_OF_A_RUN)} or ${lua(FENCES)})
end

local function holdersOf(i)
  return (string.gsub(KEYS[i + 1], 'queue$', 'holders'))
end

-- What KEYS[i] holds (false: nothing; a table: an error); and when it is shared, how, and by how many whose leases last.
local function state(i)
  local value = redis.pcall('GET', KEYS[i])
  local sharing = type(value) == 'string' and string.match(value, ${lua(SHARING_PATTERN)})
  if not sharing then return value end
  local holders = holdersOf(i)
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local count = call('ZCARD', holders)
  if count > 0 then return value, sharing, count end
  call('DEL', KEYS[i])
  return false
end

-- Whether the token has KEYS[i], whose state is given.
local function has(i, token, value, sharing)
  if sharing then return call('ZSCORE', holdersOf(i), token) and true end
  return value == token
end

-- Whether one more may have it who wants to share it like this.
local function joins(wants, sharing, count)
  if wants ~= sharing then return false end
  return wants == 'read' or count < tonumber(string.match(wants, '%d+'))
end

-- Lets a shared KEYS[i] last as long as the longest lease of those who share it; drops it with the last of them.
local function lastWithHolders(i, value)
  local last = call('ZRANGE', holdersOf(i), -1, -1, 'WITHSCORES')[2]
  if not last then return call('DEL', KEYS[i]) end
  call('SET', KEYS[i], value, 'PX', last - now)
  call('PEXPIRE', holdersOf(i), last - now)
end

-- Gives the free KEYS[i], or a part of the shared one.
local function give(i, token, lease, wants)
  if wants == 'exclusive' then return call('SET', KEYS[i], token, 'PX', lease) end
  local fresh, value = ${lua(SHARED)} .. wants, call('GET', KEYS[i])
  if not value or string.match(value, '^%S*') ~= fresh then
    value = fresh
    call('DEL', holdersOf(i))
  end
  call('ZADD', holdersOf(i), now + lease, token)
  lastWithHolders(i, value)
end

-- Pushes the end of what the token has of KEYS[i] out, never nearer, and leaves the rest as it is: it may ask late.
local function extend(i, token, lease)
  local value, sharing = state(i)
  if not sharing then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
  elseif tonumber(call('ZSCORE', holdersOf(i), token)) < now + lease then
    call('ZADD', holdersOf(i), now + lease, token)
    lastWithHolders(i, value)
  end
end

local guesses = false

local function sourceOf(token)
  return string.match(token, '^(.*)%.') or ''
end

-- The channel of the token's process, if somebody listens there. PUBLISH counts those too who listen to everything, so NUMSUB
-- is asked.
local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  local channel = source and string.gsub(note, 'fence$', 'wake:') .. source
  return channel and redis.pcall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 and channel
end

-- Answers whether somebody heard it. A user that may not PUBLISH is heard by nobody.
local function say(channel, message)
  return (tonumber(redis.pcall('PUBLISH', channel, message)) or 0) > 0
end

local function tell(token, message)
  local channel = channelOf(token)
  return channel and say(channel, message)
end

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
  if since and now - since < ${lua(DEAF_LEASE_MS)} then return end
  call('ZADD', aliveOf(i), now, '?')
  call('PEXPIRE', aliveOf(i), ${lua(QUEUE_TTL_MS)})
end

-- Whether a waiter has been silent since somebody was given KEYS[i] who never asked for it: who lives has asked meanwhile.
local function isSilent(i, aliveUntil)
  local since = call('ZSCORE', aliveOf(i), '?')
  return since and now - since >= ${lua(DEAF_LEASE_MS)} and aliveUntil - ${lua(ALIVE_MS)} < tonumber(since)
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
  if dropped >= ${lua(MOST_PASSED)} then return false end
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
        if (let[queue] or 0) > before then callFrom(i, at + ${lua(MOST_AT_ONCE)}, asker) end
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
          if value and (let[queue] or 0) >= ${lua(MOST_AT_ONCE)} then
            callFrom(i, at + ${lua(MOST_AT_ONCE)}, asker)
            return value, sharing, count, true
          end
          others = call('ZCARD', queue) > 1 and 1 or 0
          local granted = string.format('granted %s %s %s %.0f %d ', token, lease, kind, fenceFor(token), others)
          heard = channel and say(channel, granted .. KEYS[i])
        end
        if heard or deaf then
          leave(i, token, lease, kind)
          give(i, token, math.min(lease, heard == true and ${lua(FIRST_LEASE_MS)} or ${lua(DEAF_LEASE_MS)}), wants)
          if guesses and others == 1 then suspect(i) end
          if wants == 'exclusive' then return token end
          value, sharing, count = true, wants, (count or 0) + 1
          let[queue] = (let[queue] or 0) + 1
        elseif at < ${lua(MOST_PASSED)} then
          silent = silent or {} -- all of its process are, but for those who are deaf
          silent[sourceOf(token)] = true
          at = at + 1
        elseif not drop(i, waiters[w], token, lease, kind) then
          return value, sharing, count, goOn(i, asker)
        end
      end
    end
    if #waiters < portion then return value, sharing, count end
    portion = ${lua(PORTION)}
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
  if not sharing then return {string.sub(value, 1, ${lua(LONGEST)}), call('PTTL', KEYS[i])} end
  -- A permit is free when the first of them ends, all of it when the last one does.
  local which = sharing == wants and 0 or -1
  local holder = call('ZRANGE', holdersOf(i), which, which, 'WITHSCORES')
  return {holder[1], math.max(0, holder[2] - now)}
end

-- Answers how many are before it, and a fence that every later grant is above.
local function join(i, token, lease, kind, holder, deaf)
  local queue, alive, waiter, asked = KEYS[i + 1], aliveOf(i), token .. ' ' .. lease .. ' ' .. kind, mint(1)
  local joined = call('ZADD', queue, 'NX', asked, waiter)
  call('ZADD', alive, now + ${lua(ALIVE_MS)} + (deaf and 0.5 or 0), token)
  call('PEXPIRE', queue, ${lua(QUEUE_TTL_MS)})
  call('PEXPIRE', alive, ${lua(QUEUE_TTL_MS)})
  if joined == 1 and string.sub(holder, -1) == ${lua(RUN_MARK)} and call('ZCARD', queue) == 1 then
    tell(holder, 'wanted ' .. holder)
  end
  return call('ZRANK', queue, waiter), asked
end

local function granted(last, fence)
  for i = first, last, 2 do
    if call('EXISTS', KEYS[i + 1]) == 1 then return -fence end
  end
  return fence
end

-- Lets what the token has of KEYS[i] end after so long. Answers 0 when it is not the token's.
local function shorten(i, token, lease)
  local value, sharing = state(i)
  if not has(i, token, value, sharing) then return 0 end
  if not sharing then return call('PEXPIRE', KEYS[i], lease) end
  call('ZADD', holdersOf(i), now + lease, token)
  lastWithHolders(i, value)
  return 1
end

local function take(verb, last, token, lease, kind)
  local wants = string.match(kind, '^[^/]*')
  local whole = verb == 'try' or verb == 'ask'
  if whole then
    for i = first, last, 2 do
      local found = obstacle(i, token, wants)
      if found then
        if found[2] then
          if verb == 'ask' then tell(found[1], 'wanted ' .. found[1]) end
          found[3], found[4] = call('ZCARD', KEYS[i + 1]), 0
        end
        return found
      end
    end
  end
  for i = first, last, 2 do
    local found = obstacle(i, token, wants)
    if found then
      -- Whatever it has of later keys, it would hold them out of order: that is how callers deadlock.
      for later = i + 2, last, 2 do
        giveUp(later, token, lease, kind)
      end
      if found[2] then
        -- What it has already it keeps for no longer than it counts as alive: it may stand still while it waits.
        for earlier = first, i - 2, 2 do
          shorten(earlier, token, math.min(lease, ${lua(ALIVE_MS)}))
        end
        found[3], found[4] = join(i, token, lease, kind, found[1], verb == 'deaf')
      else
        giveUp(i, token, lease, kind)
      end
      return found
    end
    if found == false then
      if guesses then call('ZREM', aliveOf(i), '?') end
      extend(i, token, lease)
    else
      give(i, token, lease, wants)
    end
    leave(i, token, lease, kind)
  end
  return granted(last, fenceFor(token))
end

local function reserve(last, token, lease)
  for i = first, last, 2 do
    if redis.pcall('GET', KEYS[i]) ~= token then return 0 end
  end
  for i = first, last, 2 do extend(i, token, lease) end
  return granted(last, mint(${lua(FENCES_OF_A_RUN)}))
end

-- Which upgrade made the one who has a key its writer (0: none, it came as one). Nothing for one who shares it.
local function upgradeOf(sharing)
  return sharing and tonumber(string.match(sharing, '^write:(%d+)$')) or (not sharing and 0 or nil)
end

-- Lets a holder's part of KEYS[i] end after so long. From here on it is not the token's any more: whatever it asked for may come late.
local function keep(i, token, lease)
  local value, sharing = state(i)
  local kept = token .. ${lua(KEPT_MARK)}
  if has(i, kept, value, sharing) then return 1 end
  if not has(i, token, value, sharing) then return 0 end
  if not sharing then
    -- Out of memory, Redis lets a script SET only after it has written something.
    call('PEXPIRE', KEYS[i], lease)
    call('SET', KEYS[i], kept, 'PX', lease)
    return 1
  end
  call('ZREM', holdersOf(i), token)
  call('ZADD', holdersOf(i), now + lease, kept)
  if upgradeOf(sharing) then value = ${lua(SHARED_READ)} end
  lastWithHolders(i, value)
  if upgradeOf(sharing) then handOver(i, nil, value, 'read', 1) end
  return 1
end

-- The last upgrade of the token that is noted to be over.
local function lastOver(value, token)
  for number, who in string.gmatch(value, ' (%d+) (%S+)') do
    if who == token then return tonumber(number) end
  end
  return 0
end

-- Notes on KEYS[i], which the token reads, that its upgrades up to this one are over. Forgets those of tokens that are gone.
local function noteOver(i, token, number)
  local value = call('GET', KEYS[i])
  if lastOver(value, token) >= number then return end
  local noted = ${lua(SHARED_READ_AND)} .. number .. ' ' .. token
  for other, who in string.gmatch(value, ' (%d+) (%S+)') do
    if who ~= token and call('ZSCORE', holdersOf(i), who) then noted = noted .. ' ' .. other .. ' ' .. who end
  end
  lastWithHolders(i, noted)
end

-- A reader that is alone becomes the writer, unless this upgrade is over already, or a later one has begun: then it comes late.
local function upgrade(last, token, lease, number)
  number = tonumber(number)
  local refused = false
  for i = first, last, 2 do
    local value, sharing, count = state(i)
    local before = upgradeOf(sharing)
    if not has(i, token, value, sharing) then
      refused = true
    elseif before then
      refused = refused or before > number
    else
      refused = refused or sharing ~= 'read' or count > 1 or lastOver(value, token) >= number
    end
  end
  for i = first, last, 2 do
    local value, sharing = state(i)
    if not refused then
      local lasts = math.max(lease, call('PTTL', KEYS[i]))
      call('DEL', holdersOf(i))
      call('ZADD', holdersOf(i), now + lasts, token)
      lastWithHolders(i, ${lua(SHARED_WRITE)} .. number)
    elseif sharing == 'read' and has(i, token, value, sharing) then
      noteOver(i, token, number)
    end
  end
  return refused and 0 or granted(last, fenceFor(token))
end

-- The writer becomes a reader, and lets in the readers that come next; unless a later upgrade made it the writer.
local function downgrade(i, token, _, number)
  local value, sharing = state(i)
  if not has(i, token, value, sharing) then return 0 end
  local writing = upgradeOf(sharing)
  number = tonumber(number) or 0
  if writing and writing > number then return 1 end
  if not sharing then give(i, token, call('PTTL', KEYS[i]), 'read') end
  if sharing == 'read' or writing then noteOver(i, token, number) end
  if writing then handOver(i, nil, true, 'read', 1) end
  return 1
end

-- Takes KEYS[i] from a holder: from one that shares it by its token, else from the token with this SHA1; and tells it who did so, and why.
local function force(i, token, _, forced)
  local value, sharing = state(i)
  if not sharing then
    if type(value) ~= 'string' or redis.sha1hex(value) ~= token then return 0 end
    token = value
  end
  tell(token, 'lost ' .. token .. ' ' .. forced)
  return free(i, token)
end

local onEach = { release = free, cancel = giveUp, keep = keep, downgrade = downgrade, force = force, shorten = shorten }
local onAll = { reserve = reserve, upgrade = upgrade }

-- What is met in a key that is no lock, or for want of memory, concerns only those who ask for that key; any other error all of the call.
local wrong
local function attempt(does, ...)
  local done, reply = pcall(does, ...)
  if done then return reply end
  local said = {err = type(reply) == 'table' and reply.err or reply}
  if not string.find(said.err, 'WRONGTYPE') and not string.find(said.err, 'OOM') then wrong = said end
  return said
end

while a <= #ARGV do
  local what, token, lease, reply = ARGV[a], ARGV[a + 1], ARGV[a + 2], nil
  local verb, count, kind = string.match(what, '^(%a+) ?(%d*) ?(%S*)$')
  local last = first + 2 * ((tonumber(count) or 1) - 1)
  if kind == '' then kind = 'exclusive' end
  if onAll[verb] then
    reply = attempt(onAll[verb], last, token, lease, kind)
  elseif onEach[verb] then
    reply = 0
    for i = first, last, 2 do
      local one = attempt(onEach[verb], i, token, lease, kind)
      if type(one) == 'table' then reply = one elseif type(reply) == 'number' then reply = reply + one end
    end
  else
    reply = attempt(take, verb, last, token, lease, kind)
  end
  if wrong then return wrong end
  replies[#replies + 1] = reply
  first = last + 2
  a = a + 3
end
bringUp()
return #replies == 1 and replies[1] or replies
`;

export const PUBLISH_SOURCE: string = `
-- ARGV[1], [2]   a channel, a message
-- RETURNS        how many heard it
return redis.call('PUBLISH', ARGV[1], ARGV[2])
`;

export const RENEW_IN_CLUSTER_SOURCE: string = `
-- KEYS[i]            a key; and in a cluster, after all of them, the holders of each in the same order, or none
-- ARGV[2i-1], [2i]   its token, its lease in ms
-- RETURNS            which i are not the token's any more, and of which that is not known; an error, if it is known of none
local call, gone, unknown, now = redis.call, {}, {}, nil

local function holdersOf(i)
  return KEYS[i + #ARGV / 2] or error(redis.error_reply('TRYAGAIN Who shares it may be elsewhere.'))
end

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
  return type(value) == 'string' and string.sub(value, 1, ${lua(SHARED_LENGTH)}) == ${lua(SHARED)} and renewShared(i, token, lease)
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
`;

export const RENEW_SOURCE: string = `
-- KEYS[i]            a key; and in a cluster, after all of them, the holders of each in the same order, or none
-- ARGV[2i-1], [2i]   its token, its lease in ms
-- RETURNS            which i are not the token's any more, and of which that is not known; an error, if it is known of none
local call, gone, unknown, now = redis.call, {}, {}, nil

local function holdersOf(i)
  return (string.find(KEYS[i], '{[^}]+}') and KEYS[i] or '{' .. KEYS[i] .. '}') .. ':holders'
end

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
  return type(value) == 'string' and string.sub(value, 1, ${lua(SHARED_LENGTH)}) == ${lua(SHARED)} and renewShared(i, token, lease)
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
`;
