/* eslint-disable max-lines */
// Written by "npm run lua" from the .lua files of this folder. Change those.
import {
  ALIVE_MS,
  COUNTER_TTL_MS,
  FENCES,
  FIRST_LEASE_MS,
  HAND_OFF_FENCES,
  KEPT_MARK,
  LOCAL_WAITERS_MARK,
  LONGEST_FAST_OPERATION,
  MAX_DROPPED,
  MAX_LET_IN,
  MAX_PASSED,
  QUEUE_PAGE,
  QUEUE_TTL_MS,
  SHARED,
  SHARED_LENGTH,
  SHARED_READ,
  SHARED_WRITE,
  SHARING_PATTERN,
  SHOWN_LENGTH,
  UNCONFIRMED_LEASE_MS,
  lua,
} from './constants.js';

/** The code of holders-of.lua. */
export const HOLDERS_OF_SOURCE: string = `
local value = redis.call('GET', KEYS[1])
if not value then return {} end
if string.sub(value, 1, ${lua(SHARED_LENGTH)}) ~= ${lua(SHARED)} then return {redis.sha1hex(value)} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', string.sub(KEYS[2], 1, -6) .. 'holders', '(' .. now, '+inf')
`;

/** The code of inspect.lua. */
export const INSPECT_SOURCE: string = `
local call, queue = redis.call, KEYS[2]
local value = call('GET', KEYS[1])
if not value then return false end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holders, waiters = {}, {}
if string.sub(value, 1, ${lua(SHARED_LENGTH)}) == ${lua(SHARED)} then
  local found = call('ZRANGE', string.sub(queue, 1, -6) .. 'holders', 0, -1, 'WITHSCORES')
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) > now then
      holders[#holders + 1] = found[i]
      holders[#holders + 1] = found[i + 1] - now
    end
  end
  if #holders == 0 then return false end
else
  value = string.sub(value, 1, ${lua(SHOWN_LENGTH)})
end
local function aliveByArrival(fence)
  return math.floor(fence / 1000) + ${lua(ALIVE_MS)}
end
local alive, queued = string.sub(queue, 1, -6) .. 'alive', call('ZRANGE', queue, 0, -1, 'WITHSCORES')
for i = 1, #queued, 2 do
  local token = string.match(queued[i], '^(%S+) %d+ %S+$')
  local aliveUntil = token and tonumber(call('ZSCORE', alive, token) or aliveByArrival(queued[i + 1]))
  if aliveUntil and aliveUntil >= now then waiters[#waiters + 1] = queued[i] end
end
return {value, call('PTTL', KEYS[1]), holders, waiters}
`;

/** The code of locks-in-cluster.lua. */
export const LOCKS_IN_CLUSTER_SOURCE = (WAKE_CHANNELS: string): string => `
local KEYS, ARGV, call, tryCall = KEYS, ARGV, redis.call, redis.pcall
local fenceCounter, replies, firstKey, nextArg = KEYS[1], {}, 3, 1
local advanceTo, counterTtl
if ARGV[1] == 'clock' or ARGV[1] == 'raise' then
  local least, isClock, last = ARGV[3], ARGV[1] == 'clock', tryCall('GET', fenceCounter)
  if type(last) == 'table' and not string.find(last.err, 'WRONGTYPE') then return last end
  last = last == false and 0 or type(last) == 'string' and string.find(last, '^%d+$') and tonumber(last)
  if isClock or not last or last >= 2^53 or last < tonumber(least) then
    local time = call('TIME')
    time = time[1] * 1000000 + time[2]
    if isClock then least = string.format('%.0f', math.max(least, time)) end
    counterTtl = string.format('%.0f', ${lua(COUNTER_TTL_MS)} + math.max(0, least - time) / 1000)
    local isBehind = not last or last >= 2^53 or last < tonumber(least)
    if isBehind and tryCall('SET', fenceCounter, least, 'PX', counterTtl).err then advanceTo = least end
  end
  nextArg = 4
end
local isLone = #ARGV == nextArg + 2 and #KEYS == firstKey + 1
local hasNoQueue = not advanceTo and isLone and call('EXISTS', KEYS[firstKey + 1]) == 0
if hasNoQueue then
  local operation, token, key = ARGV[nextArg], ARGV[nextArg + 1], KEYS[firstKey]
  if #operation > ${lua(LONGEST_FAST_OPERATION)} then
    operation = string.match(operation, '^(%a+) 1 exclusive/') or operation
  end
  if operation == 'queue' or operation == 'handoff' or operation == 'try' or operation == 'poll' then
    local set = tryCall('SET', key, token, 'NX', 'PX', ARGV[nextArg + 2])
    if set and not set.err then
      local isHandOff = operation == 'handoff'
        or (operation ~= 'queue' and string.sub(token, -1) == ${lua(LOCAL_WAITERS_MARK)})
      local count = isHandOff and ${lua(HAND_OFF_FENCES)} or ${lua(FENCES)}
      local last = call('INCRBY', fenceCounter, count)
      if last - count > 0 then return last - count + 1 end
      call('DEL', fenceCounter)
    end
  elseif operation == 'release' and tryCall('GET', key) == token then
    return call('DEL', key)
  end
end
local operationCount = (#ARGV - nextArg + 1) / 3
if not advanceTo and operationCount > 1 and #KEYS == firstKey - 1 + 2 * operationCount then
  local queues = {}
  for i = 1, operationCount do queues[i] = KEYS[firstKey + 2 * i - 1] end
  if call('EXISTS', unpack(queues)) == 0 then
    local fences, grantCount, granted = 0, 0, {}
    for i = 1, operationCount do
      local operation, token, key = ARGV[nextArg], ARGV[nextArg + 1], KEYS[firstKey]
      if #operation > ${lua(LONGEST_FAST_OPERATION)} then
        operation = string.match(operation, '^(%a+) 1 exclusive/') or operation
      end
      if operation == 'queue' or operation == 'handoff' or operation == 'try' or operation == 'poll' then
        local set = tryCall('SET', key, token, 'NX', 'PX', ARGV[nextArg + 2])
        if not set or set.err then break end
        grantCount = grantCount + 1
        granted[grantCount] = i
        replies[i] = fences + 1
        local isHandOff = operation == 'handoff'
          or (operation ~= 'queue' and string.sub(token, -1) == ${lua(LOCAL_WAITERS_MARK)})
        fences = fences + (isHandOff and ${lua(HAND_OFF_FENCES)} or ${lua(FENCES)})
      elseif operation == 'release' and tryCall('GET', key) == token then
        replies[i] = call('DEL', key)
      else
        break
      end
      firstKey = firstKey + 2
      nextArg = nextArg + 3
    end
    local before = 0
    if fences > 0 then
      before = call('INCRBY', fenceCounter, fences) - fences
      if before <= 0 then
        local time = call('TIME')
        call('SET', fenceCounter, string.format('%.0f', time[1] * 1000000 + time[2] + fences), 'PX', ${lua(COUNTER_TTL_MS)})
        before = time[1] * 1000000 + time[2]
      end
    end
    if nextArg > #ARGV and operationCount > 2 then return {operationCount, before} end
    for i = 1, grantCount do
      local nth = granted[i]
      replies[nth] = replies[nth] + before
    end
    if nextArg > #ARGV then return replies end
  end
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function advanceCounter()
  if not advanceTo then return end
  call('SET', fenceCounter, advanceTo, 'PX', counterTtl)
  advanceTo = nil
end
local function mint(count)
  advanceCounter()
  local last = call('INCRBY', fenceCounter, count)
  if last - count < 1 then
    call('SET', fenceCounter, string.format('%.0f', time[1] * 1000000 + time[2]), 'PX', ${lua(COUNTER_TTL_MS)})
    last = call('INCRBY', fenceCounter, count)
  end
  return last - count + 1
end
local function fenceFor(token)
  return mint(string.sub(token, -1) == ${lua(LOCAL_WAITERS_MARK)} and ${lua(HAND_OFF_FENCES)} or ${lua(FENCES)})
end
local function holdersOf(i)
  return string.sub(KEYS[i + 1], 1, -6) .. 'holders'
end
local function state(i)
  local value = tryCall('GET', KEYS[i])
  if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then error(value) end
  local sharing = type(value) == 'string' and string.match(value, ${lua(SHARING_PATTERN)})
  if not sharing then return value end
  local holders = holdersOf(i)
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local count = call('ZCARD', holders)
  if count > 0 then return value, sharing, count end
  call('DEL', KEYS[i])
  return false
end
local function holds(i, token, value, sharing)
  if sharing then return call('ZSCORE', holdersOf(i), token) and true end
  return value == token
end
local function hasRoom(wanted, sharing, count)
  if wanted ~= sharing then return false end
  return wanted == 'read' or count < tonumber(string.match(wanted, '^permits:(%d+)') or 0)
end
local function writeShared(i, value)
  local last = call('ZRANGE', holdersOf(i), -1, -1, 'WITHSCORES')[2]
  if not last then return call('DEL', KEYS[i]) end
  call('SET', KEYS[i], value, 'PX', last - now)
  call('PEXPIRE', holdersOf(i), last - now)
end
local function grant(i, token, lease, wanted)
  if wanted == 'exclusive' then return call('SET', KEYS[i], token, 'PX', lease) end
  local fresh, value = ${lua(SHARED)} .. wanted, call('GET', KEYS[i])
  if not value or string.match(value, '^%S*') ~= fresh then
    value = fresh
    call('DEL', holdersOf(i))
  end
  call('ZADD', holdersOf(i), now + lease, token)
  writeShared(i, value)
end
local function extend(i, token, lease)
  local value, sharing = state(i)
  if not sharing then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
  elseif tonumber(call('ZSCORE', holdersOf(i), token)) < now + lease then
    call('ZADD', holdersOf(i), now + lease, token)
    writeShared(i, value)
  end
end
local function shorten(i, token, lease)
  local value, sharing = state(i)
  if not holds(i, token, value, sharing) then return 0 end
  if not sharing then return call('PEXPIRE', KEYS[i], lease) end
  call('ZADD', holdersOf(i), now + lease, token)
  writeShared(i, value)
  return 1
end
local deliveryIsUnknown = true
local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  return source and ${lua(WAKE_CHANNELS)} .. source
end
local function publish(channel, message)
  return type(tryCall('PUBLISH', channel, message)) == 'number' and 'maybe'
end
local function sourceOf(token)
  return string.match(token, '^(.*)%.') or ''
end
local function notify(token, message)
  local channel = channelOf(token)
  return channel and publish(channel, message)
end
local function aliveByArrival(fence)
  return math.floor(fence / 1000) + ${lua(ALIVE_MS)}
end
local function aliveOf(i)
  return string.sub(KEYS[i + 1], 1, -6) .. 'alive'
end
local passed = {}
local function readWaiter(waiter)
  local token, lease, kind = string.match(waiter, '^(%S+) (%d+) (%S+)$')
  if not token or #lease > 13 or tonumber(lease) < 1 then return nil end
  local wanted = string.match(kind, '^[^/]*')
  local isKnown = wanted == 'exclusive' or wanted == 'read' or string.find(wanted, '^permits:%d+$')
  if isKnown then return token, lease, kind, wanted end
end
local function enqueue(i, token, lease, kind, holder, isUnsubscribed)
  local queue, alive, waiter, asked = KEYS[i + 1], aliveOf(i), token .. ' ' .. lease .. ' ' .. kind, mint('1')
  local added = call('ZADD', queue, 'NX', asked, waiter)
  call('PEXPIRE', queue, ${lua(QUEUE_TTL_MS)})
  if added == 0 or deliveryIsUnknown or isUnsubscribed then
    call('ZADD', alive, now + ${lua(ALIVE_MS)} + (isUnsubscribed and 0.5 or 0), token)
    call('PEXPIRE', alive, ${lua(QUEUE_TTL_MS)})
  end
  if added == 1 and string.sub(holder, -1) == ${lua(LOCAL_WAITERS_MARK)} and call('ZCARD', queue) == 1 then
    notify(holder, 'contended ' .. holder)
  end
  local ahead, silent = call('ZRANK', queue, waiter), passed[queue]
  if silent and ahead < silent.count and (isUnsubscribed or added == 1) then passed[queue] = nil end
  return ahead, asked
end
local function dequeue(i, token, lease, kind)
  local queue, waiter = KEYS[i + 1], token .. ' ' .. lease .. ' ' .. kind
  if call('ZREM', queue, waiter) == 0 then return false end
  local silent = passed[queue]
  if silent and silent[waiter] then silent.count, silent[token], silent[waiter] = silent.count - 1, nil, nil end
  call('ZREM', aliveOf(i), token)
  if deliveryIsUnknown and call('EXISTS', queue) == 0 then call('DEL', aliveOf(i)) end
  return true
end
local function noteUnconfirmed(i)
  local since = call('ZSCORE', aliveOf(i), '?')
  if since and now - since < ${lua(UNCONFIRMED_LEASE_MS)} then return end
  call('ZADD', aliveOf(i), now, '?')
  call('PEXPIRE', aliveOf(i), ${lua(QUEUE_TTL_MS)})
end
local function isSilent(i, aliveUntil)
  local since = call('ZSCORE', aliveOf(i), '?')
  return since and now - since >= ${lua(UNCONFIRMED_LEASE_MS)} and aliveUntil - ${lua(ALIVE_MS)} < tonumber(since)
end
local letIn, offered = {}, {}
local dropped = 0
local silentSources
local function offer(i, position, asker)
  if offered[KEYS[i + 1]] then return end
  offered[KEYS[i + 1]] = true
  local waiter = call('ZRANGE', KEYS[i + 1], position, position)[1] or call('ZRANGE', KEYS[i + 1], -1, -1)[1]
  local token = waiter and readWaiter(waiter)
  if token and token ~= asker then notify(token, 'offered ' .. token) end
end
local function drop(i, waiter, token, lease, kind)
  if dropped >= ${lua(MAX_DROPPED)} then return false end
  dropped = dropped + 1
  if token then dequeue(i, token, lease, kind) else call('ZREM', KEYS[i + 1], waiter) end
  return true
end
local function continueLater(i, asker)
  local alive = call('ZRANGE', aliveOf(i), -1, -1, 'WITHSCORES')
  local newest = call('ZRANGE', KEYS[i + 1], -1, -1, 'WITHSCORES')
  if tonumber(alive[2] or 0) < now and aliveByArrival(newest[2] or 0) < now then
    call('DEL', KEYS[i + 1], aliveOf(i))
    return nil
  end
  offer(i, -1, asker)
  return 'unfinished'
end
local function takeBack(i, token, wanted)
  if wanted == 'exclusive' then return call('DEL', KEYS[i]) end
  call('ZREM', holdersOf(i), token)
  writeShared(i, call('GET', KEYS[i]))
end
local function handOff(i, asker, value, sharing, count)
  if value and not (sharing and hasRoom(sharing, sharing, count)) then return value, sharing, count end
  local queue, alive, page = KEYS[i + 1], aliveOf(i), 1
  local silent, letInBefore = passed[queue], letIn[queue] or 0
  if silent and asker and silent[asker] then return value, sharing, count end
  local position = silent and silent.count or 0
  while true do
    local waiters = call('ZRANGE', queue, position, position + page - 1, 'WITHSCORES')
    for w = 1, #waiters, 2 do
      local token, lease, kind, wanted = readWaiter(waiters[w])
      if token and token == asker then
        if (letIn[queue] or 0) > letInBefore then offer(i, position + ${lua(MAX_LET_IN)}, asker) end
        return value, sharing, count
      end
      local aliveUntil = token and tonumber(call('ZSCORE', alive, token) or aliveByArrival(waiters[w + 1]))
      if not token or aliveUntil < now or (deliveryIsUnknown and isSilent(i, aliveUntil)) then
        if not drop(i, waiters[w], token, lease, kind) then return value, sharing, count, continueLater(i, asker) end
      else
        local isUnsubscribed, heard, others = aliveUntil % 1 ~= 0, false, nil
        local channel = not (silentSources and silentSources[sourceOf(token)]) and channelOf(token)
        if isUnsubscribed or channel then
          if value and not hasRoom(wanted, sharing, count) then return value, sharing, count, 'ahead' end
          if value and (letIn[queue] or 0) >= ${lua(MAX_LET_IN)} then
            offer(i, position + ${lua(MAX_LET_IN)}, asker)
            return value, sharing, count, 'ahead'
          end
          others = call('ZCARD', queue) > 1 and 1 or 0
          local granted = string.format('granted %s %s %s %.0f %d ', token, lease, kind, fenceFor(token), others)
          local isTold = channel and not deliveryIsUnknown
          grant(i, token, math.min(lease, isTold and ${lua(FIRST_LEASE_MS)} or ${lua(UNCONFIRMED_LEASE_MS)}), wanted)
          heard = channel and publish(channel, granted .. KEYS[i])
          if not (heard or isUnsubscribed) then takeBack(i, token, wanted) end
        end
        if heard or isUnsubscribed then
          dequeue(i, token, lease, kind)
          if deliveryIsUnknown and others == 1 then noteUnconfirmed(i) end
          if wanted == 'exclusive' then return token end
          value, sharing, count = true, wanted, (count or 0) + 1
          letIn[queue] = (letIn[queue] or 0) + 1
        elseif position < ${lua(MAX_PASSED)} then
          silentSources = silentSources or {}
          silentSources[sourceOf(token)] = true
          position = position + 1
          silent = silent or {}
          silent.count, silent[token], silent[waiters[w]], passed[queue] = position, true, true, silent
        elseif not drop(i, waiters[w], token, lease, kind) then
          return value, sharing, count, continueLater(i, asker)
        end
      end
    end
    if #waiters < 2 * page then return value, sharing, count end
    page = ${lua(QUEUE_PAGE)}
  end
end
local function release(i, token)
  local value, sharing, count = state(i)
  if not holds(i, token, value, sharing) then return 0 end
  if sharing then
    call('ZREM', holdersOf(i), token)
    writeShared(i, value)
    value, count = count > 1 and value, count - 1
    handOff(i, nil, value, sharing, count)
  else
    call('DEL', KEYS[i])
    handOff(i)
  end
  return 1
end
local function cancel(i, token, lease, kind)
  local wasQueued, released = dequeue(i, token, lease, kind), release(i, token)
  if wasQueued and released == 0 then handOff(i, nil, state(i)) end
  return released
end
local function fenceReply(lastKey, fence)
  for i = firstKey, lastKey, 2 do
    if call('EXISTS', KEYS[i + 1]) == 1 then return -fence end
  end
  return fence
end
local function availability(i, token, wanted)
  local value, sharing, count = state(i)
  if type(value) == 'table' then return 'refused', value end
  if value and holds(i, token, value, sharing) then return 'held' end
  if sharing and sharing ~= wanted and string.find(sharing, '^permits') and string.find(wanted, '^permits') then
    return 'refused', {sharing}
  end
  local blocked
  if (sharing or not value) and call('EXISTS', KEYS[i + 1]) == 1 then
    value, sharing, count, blocked = handOff(i, token, value, sharing, count)
  end
  if blocked == 'unfinished' then return 'busy', {'', 0} end
  if not blocked and (not value or hasRoom(wanted, sharing, count)) then return 'free' end
  if not sharing then return 'busy', {string.sub(value, 1, ${lua(SHOWN_LENGTH)}), call('PTTL', KEYS[i])} end
  local which = sharing == wanted and 0 or -1
  local holder = call('ZRANGE', holdersOf(i), which, which, 'WITHSCORES')
  return 'busy', {holder[1], math.max(0, holder[2] - now)}
end
local function acquire(operation, lastKey, token, lease, kind)
  local wanted = string.match(kind, '^[^/]*')
  if operation == 'try' or operation == 'poll' then
    for i = firstKey, lastKey, 2 do
      local status, reply = availability(i, token, wanted)
      if status == 'busy' then
        if operation == 'poll' then notify(reply[1], 'contended ' .. reply[1]) end
        reply[3], reply[4] = call('ZCARD', KEYS[i + 1]), 0
      end
      if reply then return reply end
    end
  end
  for i = firstKey, lastKey, 2 do
    local status, reply = availability(i, token, wanted)
    if reply then
      for later = i + 2, lastKey, 2 do
        cancel(later, token, lease, kind)
      end
      if status == 'busy' then
        for earlier = firstKey, i - 2, 2 do
          shorten(earlier, token, math.min(lease, ${lua(ALIVE_MS)}))
        end
        reply[3], reply[4] = enqueue(i, token, lease, kind, reply[1], operation == 'unsubscribed')
      else
        cancel(i, token, lease, kind)
      end
      return reply
    end
    if status == 'held' then
      if deliveryIsUnknown then call('ZREM', aliveOf(i), '?') end
      extend(i, token, lease)
    else
      grant(i, token, lease, wanted)
    end
    dequeue(i, token, lease, kind)
  end
  return fenceReply(lastKey, fenceFor(token))
end
local function reserve(lastKey, token, lease)
  for i = firstKey, lastKey, 2 do
    if state(i) ~= token then return 0 end
  end
  for i = firstKey, lastKey, 2 do extend(i, token, lease) end
  return fenceReply(lastKey, mint(${lua(HAND_OFF_FENCES)}))
end
local function upgradeOf(sharing)
  return sharing and tonumber(string.match(sharing, '^write:(%d+)$')) or (not sharing and 0 or nil)
end
local function lastEndedUpgrade(value, token)
  local isLast = string.sub(value, -#token - 1) == ' ' .. token
  local before = isLast and #value - #token or string.find(value, ' ' .. token .. ' ', 1, true)
  local number = before and string.match(string.sub(value, math.max(1, before - 20), before - 1), ' (%d+)$')
  if not number then return 0 end
  return tonumber(number), before - #number - 1, before + #token
end
local function noteEndedUpgrade(i, value, token, number)
  local noted, from, to = lastEndedUpgrade(value, token)
  if noted >= number then return end
  local rest, kept = string.find(value, ' ', 1, true) or #value + 1, ''
  if from then value = string.sub(value, 1, from - 1) .. string.sub(value, to + 1) end
  for _ = 1, 2 do
    local note, reader, next = string.match(value, '^( %d+ (%S+))()', rest)
    if not note then break end
    if call('ZSCORE', holdersOf(i), reader) then kept = kept .. note end
    rest = next
  end
  writeShared(i, ${lua(SHARED_READ)} .. string.sub(value, rest) .. kept .. ' ' .. number .. ' ' .. token)
end
local function upgrade(lastKey, token, lease, number)
  number = tonumber(number)
  local isRefused, values = false, {}
  for i = firstKey, lastKey, 2 do
    local value, sharing, count = state(i)
    local before, isOurs = upgradeOf(sharing), holds(i, token, value, sharing)
    if isOurs and sharing == 'read' then values[i] = value end
    if not isOurs then
      isRefused = true
    elseif before then
      isRefused = isRefused or before > number
    else
      isRefused = isRefused or sharing ~= 'read' or count > 1 or lastEndedUpgrade(value, token) >= number
    end
  end
  for i = firstKey, lastKey, 2 do
    if not isRefused then
      local ttl = math.max(lease, call('PTTL', KEYS[i]))
      call('DEL', holdersOf(i))
      call('ZADD', holdersOf(i), now + ttl, token)
      writeShared(i, ${lua(SHARED_WRITE)} .. number)
    elseif values[i] then
      noteEndedUpgrade(i, values[i], token, number)
    end
  end
  return isRefused and 0 or fenceReply(lastKey, fenceFor(token))
end
local function downgrade(i, token, _, number)
  local value, sharing = state(i)
  if not holds(i, token, value, sharing) then return 0 end
  local writing = upgradeOf(sharing)
  number = tonumber(number) or 0
  if writing and writing > number then return 1 end
  if not sharing then grant(i, token, call('PTTL', KEYS[i]), 'read') end
  if sharing == 'read' or writing then noteEndedUpgrade(i, call('GET', KEYS[i]), token, number) end
  if writing then handOff(i, nil, true, 'read', 1) end
  return 1
end
local function keep(i, token, lease)
  local value, sharing = state(i)
  local kept = token .. ${lua(KEPT_MARK)}
  if not holds(i, token, value, sharing) then return holds(i, kept, value, sharing) and 1 or 0 end
  if sharing then
    call('ZREM', holdersOf(i), token)
    call('ZADD', holdersOf(i), now + lease, kept)
    if upgradeOf(sharing) then value = ${lua(SHARED_READ)} end
    writeShared(i, value)
    if upgradeOf(sharing) then handOff(i, nil, value, 'read', 1) end
  else
    call('PEXPIRE', KEYS[i], lease)
    call('SET', KEYS[i], kept, 'PX', lease)
  end
  offer(i, 0)
  return 1
end
local function force(i, token, _, forced)
  local value, sharing = state(i)
  if not sharing then
    if type(value) ~= 'string' or redis.sha1hex(value) ~= token then return 0 end
    token = value
  end
  notify(token, 'lost ' .. token .. ' ' .. forced)
  return release(i, token)
end
local onAllKeys = {reserve = reserve, upgrade = upgrade}
local onEachKey = {
  release = release, cancel = cancel, keep = keep, shorten = shorten, downgrade = downgrade, force = force,
}
local callError
local function attempt(run, ...)
  local done, reply = pcall(run, ...)
  if done then return reply end
  local failure = {err = type(reply) == 'table' and reply.err or reply}
  if not string.find(failure.err, 'WRONGTYPE') and not string.find(failure.err, 'OOM') then callError = failure end
  return failure
end
while nextArg <= #ARGV do
  local what, token, lease, reply = ARGV[nextArg], ARGV[nextArg + 1], ARGV[nextArg + 2]
  local operation, keyCount, kind = string.match(what, '^(%a+) ?(%d*) ?(%S*)$')
  local lastKey = firstKey + 2 * ((tonumber(keyCount) or 1) - 1)
  if kind == '' then kind = 'exclusive' end
  if onAllKeys[operation] then
    reply = attempt(onAllKeys[operation], lastKey, token, lease, kind)
  elseif onEachKey[operation] then
    reply = 0
    for i = firstKey, lastKey, 2 do
      local ofKey = attempt(onEachKey[operation], i, token, lease, kind)
      if type(ofKey) == 'table' then reply = ofKey elseif type(reply) == 'number' then reply = reply + ofKey end
    end
  else
    reply = attempt(acquire, operation, lastKey, token, lease, kind)
  end
  if callError then return callError end
  replies[#replies + 1] = reply
  firstKey = lastKey + 2
  nextArg = nextArg + 3
end
advanceCounter()
return #replies == 1 and replies[1] or replies
`;

/** The code of locks.lua. */
export const LOCKS_SOURCE: string = `
local KEYS, ARGV, call, tryCall = KEYS, ARGV, redis.call, redis.pcall
local fenceCounter, replies, firstKey, nextArg = KEYS[1], {}, 2, 1
local advanceTo, counterTtl
if ARGV[1] == 'clock' or ARGV[1] == 'raise' then
  local least, isClock, last = ARGV[3], ARGV[1] == 'clock', tryCall('GET', fenceCounter)
  if type(last) == 'table' and not string.find(last.err, 'WRONGTYPE') then return last end
  last = last == false and 0 or type(last) == 'string' and string.find(last, '^%d+$') and tonumber(last)
  if isClock or not last or last >= 2^53 or last < tonumber(least) then
    local time = call('TIME')
    time = time[1] * 1000000 + time[2]
    if isClock then least = string.format('%.0f', math.max(least, time)) end
    counterTtl = string.format('%.0f', ${lua(COUNTER_TTL_MS)} + math.max(0, least - time) / 1000)
    local isBehind = not last or last >= 2^53 or last < tonumber(least)
    if isBehind and tryCall('SET', fenceCounter, least, 'PX', counterTtl).err then advanceTo = least end
  end
  nextArg = 4
end
local isLone = #ARGV == nextArg + 2 and #KEYS == firstKey + 1
local hasNoQueue = not advanceTo and isLone and call('EXISTS', KEYS[firstKey + 1]) == 0
if hasNoQueue then
  local operation, token, key = ARGV[nextArg], ARGV[nextArg + 1], KEYS[firstKey]
  if #operation > ${lua(LONGEST_FAST_OPERATION)} then
    operation = string.match(operation, '^(%a+) 1 exclusive/') or operation
  end
  if operation == 'queue' or operation == 'handoff' or operation == 'try' or operation == 'poll' then
    local set = tryCall('SET', key, token, 'NX', 'PX', ARGV[nextArg + 2])
    if set and not set.err then
      local isHandOff = operation == 'handoff'
        or (operation ~= 'queue' and string.sub(token, -1) == ${lua(LOCAL_WAITERS_MARK)})
      local count = isHandOff and ${lua(HAND_OFF_FENCES)} or ${lua(FENCES)}
      local last = call('INCRBY', fenceCounter, count)
      if last - count > 0 then return last - count + 1 end
      call('DEL', fenceCounter)
    end
  elseif operation == 'release' and tryCall('GET', key) == token then
    return call('DEL', key)
  end
end
local operationCount = (#ARGV - nextArg + 1) / 3
if not advanceTo and operationCount > 1 and #KEYS == firstKey - 1 + 2 * operationCount then
  local queues = {}
  for i = 1, operationCount do queues[i] = KEYS[firstKey + 2 * i - 1] end
  if call('EXISTS', unpack(queues)) == 0 then
    local fences, grantCount, granted = 0, 0, {}
    for i = 1, operationCount do
      local operation, token, key = ARGV[nextArg], ARGV[nextArg + 1], KEYS[firstKey]
      if #operation > ${lua(LONGEST_FAST_OPERATION)} then
        operation = string.match(operation, '^(%a+) 1 exclusive/') or operation
      end
      if operation == 'queue' or operation == 'handoff' or operation == 'try' or operation == 'poll' then
        local set = tryCall('SET', key, token, 'NX', 'PX', ARGV[nextArg + 2])
        if not set or set.err then break end
        grantCount = grantCount + 1
        granted[grantCount] = i
        replies[i] = fences + 1
        local isHandOff = operation == 'handoff'
          or (operation ~= 'queue' and string.sub(token, -1) == ${lua(LOCAL_WAITERS_MARK)})
        fences = fences + (isHandOff and ${lua(HAND_OFF_FENCES)} or ${lua(FENCES)})
      elseif operation == 'release' and tryCall('GET', key) == token then
        replies[i] = call('DEL', key)
      else
        break
      end
      firstKey = firstKey + 2
      nextArg = nextArg + 3
    end
    local before = 0
    if fences > 0 then
      before = call('INCRBY', fenceCounter, fences) - fences
      if before <= 0 then
        local time = call('TIME')
        call('SET', fenceCounter, string.format('%.0f', time[1] * 1000000 + time[2] + fences), 'PX', ${lua(COUNTER_TTL_MS)})
        before = time[1] * 1000000 + time[2]
      end
    end
    if nextArg > #ARGV and operationCount > 2 then return {operationCount, before} end
    for i = 1, grantCount do
      local nth = granted[i]
      replies[nth] = replies[nth] + before
    end
    if nextArg > #ARGV then return replies end
  end
end
if not advanceTo and isLone then
  local what, token, lease = ARGV[nextArg], ARGV[nextArg + 1], ARGV[nextArg + 2]
  local key, queue = KEYS[firstKey], KEYS[firstKey + 1]
  local holder, waiters, waiter, waiting, waiterLease, channel, fenceCount = tryCall('GET', key)
  if what == 'release' and holder == token then
    local time, label = call('TIME'), nil
    waiters = tryCall('ZRANGE', queue, '0', '1', 'WITHSCORES')
    waiter = waiters[1] or ''
    waiting, waiterLease, label = string.match(waiter, '^(%S+) ([1-9]%d*) exclusive(%S*)$')
    local isPlain = waiting and #waiterLease <= 13 and (label == '' or string.sub(label, 1, 1) == '/')
    local arrivedMs = isPlain and tonumber(string.sub(waiters[2], 1, -4)) or 0
    local hasJustArrived = arrivedMs + ${lua(ALIVE_MS)} >= time[1] * 1000 + math.floor(time[2] / 1000)
    local source = hasJustArrived and string.match(waiting, '^(.*)%.')
    channel = source and string.sub(fenceCounter, 1, -6) .. 'wake:' .. source
    if channel and tryCall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 then
      fenceCount = string.sub(waiting, -1) == ${lua(LOCAL_WAITERS_MARK)} and ${lua(HAND_OFF_FENCES)} or ${lua(FENCES)}
    end
  elseif type(holder) == 'string' and holder ~= token and not string.find(holder, ${lua(SHARING_PATTERN)}) then
    local operation, kind = what, 'exclusive'
    if #what > ${lua(LONGEST_FAST_OPERATION)} then operation, kind = string.match(what, '^(%a+) 1 (exclusive/%S*)$') end
    local notifies = string.sub(holder, -1) == ${lua(LOCAL_WAITERS_MARK)} and hasNoQueue
    if (operation == 'queue' or operation == 'handoff') and not notifies then
      waiter, fenceCount = token .. ' ' .. lease .. ' ' .. kind, '1'
    end
  end
  local last = fenceCount and tryCall('INCRBY', fenceCounter, fenceCount)
  local fence = type(last) == 'number' and last - fenceCount + 1
  if fence and fence <= 1 then
    call('DEL', fenceCounter)
  elseif fence then
    local low = fence % 1e9
    local digits = string.format('%d%09d', (fence - low) / 1e9, low)
    if channel then
      local others = waiters[3] and ' 1 ' or ' 0 '
      call('SET', key, waiting, 'PX', waiterLease - ${lua(FIRST_LEASE_MS)} < 0 and waiterLease or ${lua(FIRST_LEASE_MS)})
      if type(tryCall('PUBLISH', channel, 'granted ' .. waiter .. ' ' .. digits .. others .. key)) == 'number' then
        local alive = string.sub(queue, 1, -6) .. 'alive'
        if waiters[3] then
          call('ZREM', queue, waiter)
          call('ZREM', alive, waiting)
        else
          call('DEL', queue, alive)
        end
        return 1
      end
      call('SET', key, token, 'PX', ${lua(FIRST_LEASE_MS)})
    else
      local added = tryCall('ZADD', queue, 'NX', digits, waiter)
      if type(added) == 'table' then return added end
      call('PEXPIRE', queue, ${lua(QUEUE_TTL_MS)})
      if added == 0 then
        local time, alive = call('TIME'), string.sub(queue, 1, -6) .. 'alive'
        call('ZADD', alive, time[1] * 1000 + math.floor(time[2] / 1000) + ${lua(ALIVE_MS)}, token)
        call('PEXPIRE', alive, ${lua(QUEUE_TTL_MS)})
      end
      local ahead = hasNoQueue and 0 or call('ZRANK', queue, waiter)
      if #holder > ${lua(SHOWN_LENGTH)} then holder = string.sub(holder, 1, ${lua(SHOWN_LENGTH)}) end
      return {holder, call('PTTL', key), ahead, fence}
    end
  end
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function advanceCounter()
  if not advanceTo then return end
  call('SET', fenceCounter, advanceTo, 'PX', counterTtl)
  advanceTo = nil
end
local function mint(count)
  advanceCounter()
  local last = call('INCRBY', fenceCounter, count)
  if last - count < 1 then
    call('SET', fenceCounter, string.format('%.0f', time[1] * 1000000 + time[2]), 'PX', ${lua(COUNTER_TTL_MS)})
    last = call('INCRBY', fenceCounter, count)
  end
  return last - count + 1
end
local function fenceFor(token)
  return mint(string.sub(token, -1) == ${lua(LOCAL_WAITERS_MARK)} and ${lua(HAND_OFF_FENCES)} or ${lua(FENCES)})
end
local function holdersOf(i)
  return string.sub(KEYS[i + 1], 1, -6) .. 'holders'
end
local function state(i)
  local value = tryCall('GET', KEYS[i])
  if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then error(value) end
  local sharing = type(value) == 'string' and string.match(value, ${lua(SHARING_PATTERN)})
  if not sharing then return value end
  local holders = holdersOf(i)
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local count = call('ZCARD', holders)
  if count > 0 then return value, sharing, count end
  call('DEL', KEYS[i])
  return false
end
local function holds(i, token, value, sharing)
  if sharing then return call('ZSCORE', holdersOf(i), token) and true end
  return value == token
end
local function hasRoom(wanted, sharing, count)
  if wanted ~= sharing then return false end
  return wanted == 'read' or count < tonumber(string.match(wanted, '^permits:(%d+)') or 0)
end
local function writeShared(i, value)
  local last = call('ZRANGE', holdersOf(i), -1, -1, 'WITHSCORES')[2]
  if not last then return call('DEL', KEYS[i]) end
  call('SET', KEYS[i], value, 'PX', last - now)
  call('PEXPIRE', holdersOf(i), last - now)
end
local function grant(i, token, lease, wanted)
  if wanted == 'exclusive' then return call('SET', KEYS[i], token, 'PX', lease) end
  local fresh, value = ${lua(SHARED)} .. wanted, call('GET', KEYS[i])
  if not value or string.match(value, '^%S*') ~= fresh then
    value = fresh
    call('DEL', holdersOf(i))
  end
  call('ZADD', holdersOf(i), now + lease, token)
  writeShared(i, value)
end
local function extend(i, token, lease)
  local value, sharing = state(i)
  if not sharing then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
  elseif tonumber(call('ZSCORE', holdersOf(i), token)) < now + lease then
    call('ZADD', holdersOf(i), now + lease, token)
    writeShared(i, value)
  end
end
local function shorten(i, token, lease)
  local value, sharing = state(i)
  if not holds(i, token, value, sharing) then return 0 end
  if not sharing then return call('PEXPIRE', KEYS[i], lease) end
  call('ZADD', holdersOf(i), now + lease, token)
  writeShared(i, value)
  return 1
end
local deliveryIsUnknown = false
local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  local channel = source and string.sub(fenceCounter, 1, -6) .. 'wake:' .. source
  return channel and tryCall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 and channel
end
local function publish(channel, message)
  return (tonumber(tryCall('PUBLISH', channel, message)) or 0) > 0
end
local function sourceOf(token)
  return string.match(token, '^(.*)%.') or ''
end
local function notify(token, message)
  local channel = channelOf(token)
  return channel and publish(channel, message)
end
local function aliveByArrival(fence)
  return math.floor(fence / 1000) + ${lua(ALIVE_MS)}
end
local function aliveOf(i)
  return string.sub(KEYS[i + 1], 1, -6) .. 'alive'
end
local passed = {}
local function readWaiter(waiter)
  local token, lease, kind = string.match(waiter, '^(%S+) (%d+) (%S+)$')
  if not token or #lease > 13 or tonumber(lease) < 1 then return nil end
  local wanted = string.match(kind, '^[^/]*')
  local isKnown = wanted == 'exclusive' or wanted == 'read' or string.find(wanted, '^permits:%d+$')
  if isKnown then return token, lease, kind, wanted end
end
local function enqueue(i, token, lease, kind, holder, isUnsubscribed)
  local queue, alive, waiter, asked = KEYS[i + 1], aliveOf(i), token .. ' ' .. lease .. ' ' .. kind, mint('1')
  local added = call('ZADD', queue, 'NX', asked, waiter)
  call('PEXPIRE', queue, ${lua(QUEUE_TTL_MS)})
  if added == 0 or deliveryIsUnknown or isUnsubscribed then
    call('ZADD', alive, now + ${lua(ALIVE_MS)} + (isUnsubscribed and 0.5 or 0), token)
    call('PEXPIRE', alive, ${lua(QUEUE_TTL_MS)})
  end
  if added == 1 and string.sub(holder, -1) == ${lua(LOCAL_WAITERS_MARK)} and call('ZCARD', queue) == 1 then
    notify(holder, 'contended ' .. holder)
  end
  local ahead, silent = call('ZRANK', queue, waiter), passed[queue]
  if silent and ahead < silent.count and (isUnsubscribed or added == 1) then passed[queue] = nil end
  return ahead, asked
end
local function dequeue(i, token, lease, kind)
  local queue, waiter = KEYS[i + 1], token .. ' ' .. lease .. ' ' .. kind
  if call('ZREM', queue, waiter) == 0 then return false end
  local silent = passed[queue]
  if silent and silent[waiter] then silent.count, silent[token], silent[waiter] = silent.count - 1, nil, nil end
  call('ZREM', aliveOf(i), token)
  if deliveryIsUnknown and call('EXISTS', queue) == 0 then call('DEL', aliveOf(i)) end
  return true
end
local function noteUnconfirmed(i)
  local since = call('ZSCORE', aliveOf(i), '?')
  if since and now - since < ${lua(UNCONFIRMED_LEASE_MS)} then return end
  call('ZADD', aliveOf(i), now, '?')
  call('PEXPIRE', aliveOf(i), ${lua(QUEUE_TTL_MS)})
end
local function isSilent(i, aliveUntil)
  local since = call('ZSCORE', aliveOf(i), '?')
  return since and now - since >= ${lua(UNCONFIRMED_LEASE_MS)} and aliveUntil - ${lua(ALIVE_MS)} < tonumber(since)
end
local letIn, offered = {}, {}
local dropped = 0
local silentSources
local function offer(i, position, asker)
  if offered[KEYS[i + 1]] then return end
  offered[KEYS[i + 1]] = true
  local waiter = call('ZRANGE', KEYS[i + 1], position, position)[1] or call('ZRANGE', KEYS[i + 1], -1, -1)[1]
  local token = waiter and readWaiter(waiter)
  if token and token ~= asker then notify(token, 'offered ' .. token) end
end
local function drop(i, waiter, token, lease, kind)
  if dropped >= ${lua(MAX_DROPPED)} then return false end
  dropped = dropped + 1
  if token then dequeue(i, token, lease, kind) else call('ZREM', KEYS[i + 1], waiter) end
  return true
end
local function continueLater(i, asker)
  local alive = call('ZRANGE', aliveOf(i), -1, -1, 'WITHSCORES')
  local newest = call('ZRANGE', KEYS[i + 1], -1, -1, 'WITHSCORES')
  if tonumber(alive[2] or 0) < now and aliveByArrival(newest[2] or 0) < now then
    call('DEL', KEYS[i + 1], aliveOf(i))
    return nil
  end
  offer(i, -1, asker)
  return 'unfinished'
end
local function takeBack(i, token, wanted)
  if wanted == 'exclusive' then return call('DEL', KEYS[i]) end
  call('ZREM', holdersOf(i), token)
  writeShared(i, call('GET', KEYS[i]))
end
local function handOff(i, asker, value, sharing, count)
  if value and not (sharing and hasRoom(sharing, sharing, count)) then return value, sharing, count end
  local queue, alive, page = KEYS[i + 1], aliveOf(i), 1
  local silent, letInBefore = passed[queue], letIn[queue] or 0
  if silent and asker and silent[asker] then return value, sharing, count end
  local position = silent and silent.count or 0
  while true do
    local waiters = call('ZRANGE', queue, position, position + page - 1, 'WITHSCORES')
    for w = 1, #waiters, 2 do
      local token, lease, kind, wanted = readWaiter(waiters[w])
      if token and token == asker then
        if (letIn[queue] or 0) > letInBefore then offer(i, position + ${lua(MAX_LET_IN)}, asker) end
        return value, sharing, count
      end
      local aliveUntil = token and tonumber(call('ZSCORE', alive, token) or aliveByArrival(waiters[w + 1]))
      if not token or aliveUntil < now or (deliveryIsUnknown and isSilent(i, aliveUntil)) then
        if not drop(i, waiters[w], token, lease, kind) then return value, sharing, count, continueLater(i, asker) end
      else
        local isUnsubscribed, heard, others = aliveUntil % 1 ~= 0, false, nil
        local channel = not (silentSources and silentSources[sourceOf(token)]) and channelOf(token)
        if isUnsubscribed or channel then
          if value and not hasRoom(wanted, sharing, count) then return value, sharing, count, 'ahead' end
          if value and (letIn[queue] or 0) >= ${lua(MAX_LET_IN)} then
            offer(i, position + ${lua(MAX_LET_IN)}, asker)
            return value, sharing, count, 'ahead'
          end
          others = call('ZCARD', queue) > 1 and 1 or 0
          local granted = string.format('granted %s %s %s %.0f %d ', token, lease, kind, fenceFor(token), others)
          local isTold = channel and not deliveryIsUnknown
          grant(i, token, math.min(lease, isTold and ${lua(FIRST_LEASE_MS)} or ${lua(UNCONFIRMED_LEASE_MS)}), wanted)
          heard = channel and publish(channel, granted .. KEYS[i])
          if not (heard or isUnsubscribed) then takeBack(i, token, wanted) end
        end
        if heard or isUnsubscribed then
          dequeue(i, token, lease, kind)
          if deliveryIsUnknown and others == 1 then noteUnconfirmed(i) end
          if wanted == 'exclusive' then return token end
          value, sharing, count = true, wanted, (count or 0) + 1
          letIn[queue] = (letIn[queue] or 0) + 1
        elseif position < ${lua(MAX_PASSED)} then
          silentSources = silentSources or {}
          silentSources[sourceOf(token)] = true
          position = position + 1
          silent = silent or {}
          silent.count, silent[token], silent[waiters[w]], passed[queue] = position, true, true, silent
        elseif not drop(i, waiters[w], token, lease, kind) then
          return value, sharing, count, continueLater(i, asker)
        end
      end
    end
    if #waiters < 2 * page then return value, sharing, count end
    page = ${lua(QUEUE_PAGE)}
  end
end
local function release(i, token)
  local value, sharing, count = state(i)
  if not holds(i, token, value, sharing) then return 0 end
  if sharing then
    call('ZREM', holdersOf(i), token)
    writeShared(i, value)
    value, count = count > 1 and value, count - 1
    handOff(i, nil, value, sharing, count)
  else
    call('DEL', KEYS[i])
    handOff(i)
  end
  return 1
end
local function cancel(i, token, lease, kind)
  local wasQueued, released = dequeue(i, token, lease, kind), release(i, token)
  if wasQueued and released == 0 then handOff(i, nil, state(i)) end
  return released
end
local function fenceReply(lastKey, fence)
  for i = firstKey, lastKey, 2 do
    if call('EXISTS', KEYS[i + 1]) == 1 then return -fence end
  end
  return fence
end
local function availability(i, token, wanted)
  local value, sharing, count = state(i)
  if type(value) == 'table' then return 'refused', value end
  if value and holds(i, token, value, sharing) then return 'held' end
  if sharing and sharing ~= wanted and string.find(sharing, '^permits') and string.find(wanted, '^permits') then
    return 'refused', {sharing}
  end
  local blocked
  if (sharing or not value) and call('EXISTS', KEYS[i + 1]) == 1 then
    value, sharing, count, blocked = handOff(i, token, value, sharing, count)
  end
  if blocked == 'unfinished' then return 'busy', {'', 0} end
  if not blocked and (not value or hasRoom(wanted, sharing, count)) then return 'free' end
  if not sharing then return 'busy', {string.sub(value, 1, ${lua(SHOWN_LENGTH)}), call('PTTL', KEYS[i])} end
  local which = sharing == wanted and 0 or -1
  local holder = call('ZRANGE', holdersOf(i), which, which, 'WITHSCORES')
  return 'busy', {holder[1], math.max(0, holder[2] - now)}
end
local function acquire(operation, lastKey, token, lease, kind)
  local wanted = string.match(kind, '^[^/]*')
  if operation == 'try' or operation == 'poll' then
    for i = firstKey, lastKey, 2 do
      local status, reply = availability(i, token, wanted)
      if status == 'busy' then
        if operation == 'poll' then notify(reply[1], 'contended ' .. reply[1]) end
        reply[3], reply[4] = call('ZCARD', KEYS[i + 1]), 0
      end
      if reply then return reply end
    end
  end
  for i = firstKey, lastKey, 2 do
    local status, reply = availability(i, token, wanted)
    if reply then
      for later = i + 2, lastKey, 2 do
        cancel(later, token, lease, kind)
      end
      if status == 'busy' then
        for earlier = firstKey, i - 2, 2 do
          shorten(earlier, token, math.min(lease, ${lua(ALIVE_MS)}))
        end
        reply[3], reply[4] = enqueue(i, token, lease, kind, reply[1], operation == 'unsubscribed')
      else
        cancel(i, token, lease, kind)
      end
      return reply
    end
    if status == 'held' then
      if deliveryIsUnknown then call('ZREM', aliveOf(i), '?') end
      extend(i, token, lease)
    else
      grant(i, token, lease, wanted)
    end
    dequeue(i, token, lease, kind)
  end
  return fenceReply(lastKey, fenceFor(token))
end
local function reserve(lastKey, token, lease)
  for i = firstKey, lastKey, 2 do
    if state(i) ~= token then return 0 end
  end
  for i = firstKey, lastKey, 2 do extend(i, token, lease) end
  return fenceReply(lastKey, mint(${lua(HAND_OFF_FENCES)}))
end
local function upgradeOf(sharing)
  return sharing and tonumber(string.match(sharing, '^write:(%d+)$')) or (not sharing and 0 or nil)
end
local function lastEndedUpgrade(value, token)
  local isLast = string.sub(value, -#token - 1) == ' ' .. token
  local before = isLast and #value - #token or string.find(value, ' ' .. token .. ' ', 1, true)
  local number = before and string.match(string.sub(value, math.max(1, before - 20), before - 1), ' (%d+)$')
  if not number then return 0 end
  return tonumber(number), before - #number - 1, before + #token
end
local function noteEndedUpgrade(i, value, token, number)
  local noted, from, to = lastEndedUpgrade(value, token)
  if noted >= number then return end
  local rest, kept = string.find(value, ' ', 1, true) or #value + 1, ''
  if from then value = string.sub(value, 1, from - 1) .. string.sub(value, to + 1) end
  for _ = 1, 2 do
    local note, reader, next = string.match(value, '^( %d+ (%S+))()', rest)
    if not note then break end
    if call('ZSCORE', holdersOf(i), reader) then kept = kept .. note end
    rest = next
  end
  writeShared(i, ${lua(SHARED_READ)} .. string.sub(value, rest) .. kept .. ' ' .. number .. ' ' .. token)
end
local function upgrade(lastKey, token, lease, number)
  number = tonumber(number)
  local isRefused, values = false, {}
  for i = firstKey, lastKey, 2 do
    local value, sharing, count = state(i)
    local before, isOurs = upgradeOf(sharing), holds(i, token, value, sharing)
    if isOurs and sharing == 'read' then values[i] = value end
    if not isOurs then
      isRefused = true
    elseif before then
      isRefused = isRefused or before > number
    else
      isRefused = isRefused or sharing ~= 'read' or count > 1 or lastEndedUpgrade(value, token) >= number
    end
  end
  for i = firstKey, lastKey, 2 do
    if not isRefused then
      local ttl = math.max(lease, call('PTTL', KEYS[i]))
      call('DEL', holdersOf(i))
      call('ZADD', holdersOf(i), now + ttl, token)
      writeShared(i, ${lua(SHARED_WRITE)} .. number)
    elseif values[i] then
      noteEndedUpgrade(i, values[i], token, number)
    end
  end
  return isRefused and 0 or fenceReply(lastKey, fenceFor(token))
end
local function downgrade(i, token, _, number)
  local value, sharing = state(i)
  if not holds(i, token, value, sharing) then return 0 end
  local writing = upgradeOf(sharing)
  number = tonumber(number) or 0
  if writing and writing > number then return 1 end
  if not sharing then grant(i, token, call('PTTL', KEYS[i]), 'read') end
  if sharing == 'read' or writing then noteEndedUpgrade(i, call('GET', KEYS[i]), token, number) end
  if writing then handOff(i, nil, true, 'read', 1) end
  return 1
end
local function keep(i, token, lease)
  local value, sharing = state(i)
  local kept = token .. ${lua(KEPT_MARK)}
  if not holds(i, token, value, sharing) then return holds(i, kept, value, sharing) and 1 or 0 end
  if sharing then
    call('ZREM', holdersOf(i), token)
    call('ZADD', holdersOf(i), now + lease, kept)
    if upgradeOf(sharing) then value = ${lua(SHARED_READ)} end
    writeShared(i, value)
    if upgradeOf(sharing) then handOff(i, nil, value, 'read', 1) end
  else
    call('PEXPIRE', KEYS[i], lease)
    call('SET', KEYS[i], kept, 'PX', lease)
  end
  offer(i, 0)
  return 1
end
local function force(i, token, _, forced)
  local value, sharing = state(i)
  if not sharing then
    if type(value) ~= 'string' or redis.sha1hex(value) ~= token then return 0 end
    token = value
  end
  notify(token, 'lost ' .. token .. ' ' .. forced)
  return release(i, token)
end
local onAllKeys = {reserve = reserve, upgrade = upgrade}
local onEachKey = {
  release = release, cancel = cancel, keep = keep, shorten = shorten, downgrade = downgrade, force = force,
}
local callError
local function attempt(run, ...)
  local done, reply = pcall(run, ...)
  if done then return reply end
  local failure = {err = type(reply) == 'table' and reply.err or reply}
  if not string.find(failure.err, 'WRONGTYPE') and not string.find(failure.err, 'OOM') then callError = failure end
  return failure
end
while nextArg <= #ARGV do
  local what, token, lease, reply = ARGV[nextArg], ARGV[nextArg + 1], ARGV[nextArg + 2]
  local operation, keyCount, kind = string.match(what, '^(%a+) ?(%d*) ?(%S*)$')
  local lastKey = firstKey + 2 * ((tonumber(keyCount) or 1) - 1)
  if kind == '' then kind = 'exclusive' end
  if onAllKeys[operation] then
    reply = attempt(onAllKeys[operation], lastKey, token, lease, kind)
  elseif onEachKey[operation] then
    reply = 0
    for i = firstKey, lastKey, 2 do
      local ofKey = attempt(onEachKey[operation], i, token, lease, kind)
      if type(ofKey) == 'table' then reply = ofKey elseif type(reply) == 'number' then reply = reply + ofKey end
    end
  else
    reply = attempt(acquire, operation, lastKey, token, lease, kind)
  end
  if callError then return callError end
  replies[#replies + 1] = reply
  firstKey = lastKey + 2
  nextArg = nextArg + 3
end
advanceCounter()
return #replies == 1 and replies[1] or replies
`;

/** The code of publish.lua. */
export const PUBLISH_SOURCE: string = `
return redis.call('PUBLISH', ARGV[1], ARGV[2])
`;

/** The code of renew-in-cluster.lua. */
export const RENEW_IN_CLUSTER_SOURCE: string = `
local call, gone, unknown, now = redis.call, {}, {}, nil
local function holdersOf(i)
  return KEYS[i + #ARGV / 2] or error(redis.error_reply('TRYAGAIN Who shares it may be elsewhere.'))
end
local function partsOf(owner)
  local token, upgrade = string.match(owner, '^(%S+) (%d+)$')
  return token or owner, tonumber(upgrade)
end
local function isWriter(value, upgrade)
  local writing = string.match(string.match(value, ${lua(SHARING_PATTERN)}), '^write:(%d+)$')
  return writing and tonumber(writing) >= upgrade
end
local function checked(value)
  if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then error(value) end
  return value
end
local function renewShared(i, owner, lease, value)
  local key, holders, token, upgrade = KEYS[i], holdersOf(i), partsOf(owner)
  if upgrade and not isWriter(value, upgrade) then return false end
  if not now then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  local ends = checked(redis.pcall('ZSCORE', holders, token))
  if type(ends) ~= 'string' or tonumber(ends) <= now then return false end
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  if tonumber(ends) < now + lease then call('ZADD', holders, now + lease, token) end
  for _, name in ipairs({key, holders}) do
    if call('PTTL', name) < tonumber(lease) then call('PEXPIRE', name, lease) end
  end
  return true
end
local function renew(i, owner, lease)
  local value = checked(redis.pcall('GET', KEYS[i]))
  if value == owner then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
    return true
  end
  return type(value) == 'string' and string.sub(value, 1, ${lua(SHARED_LENGTH)}) == ${lua(SHARED)}
    and renewShared(i, owner, lease, value)
end
local failure
for i = 1, #ARGV / 2 do
  local done, held = pcall(renew, i, ARGV[2 * i - 1], ARGV[2 * i])
  if not done then
    failure = type(held) == 'table' and held.err or held
    unknown[#unknown + 1] = i
  elseif not held then
    gone[#gone + 1] = i
  end
end
if failure and #unknown == #ARGV / 2 then return redis.error_reply(failure) end
return {gone, unknown}
`;

/** The code of renew.lua. */
export const RENEW_SOURCE: string = `
local call, gone, unknown, now = redis.call, {}, {}, nil
local function holdersOf(i)
  return (string.find(KEYS[i], '{[^}]+}') and KEYS[i] or '{' .. KEYS[i] .. '}') .. ':holders'
end
local function partsOf(owner)
  local token, upgrade = string.match(owner, '^(%S+) (%d+)$')
  return token or owner, tonumber(upgrade)
end
local function isWriter(value, upgrade)
  local writing = string.match(string.match(value, ${lua(SHARING_PATTERN)}), '^write:(%d+)$')
  return writing and tonumber(writing) >= upgrade
end
local function checked(value)
  if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then error(value) end
  return value
end
local function renewShared(i, owner, lease, value)
  local key, holders, token, upgrade = KEYS[i], holdersOf(i), partsOf(owner)
  if upgrade and not isWriter(value, upgrade) then return false end
  if not now then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  local ends = checked(redis.pcall('ZSCORE', holders, token))
  if type(ends) ~= 'string' or tonumber(ends) <= now then return false end
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  if tonumber(ends) < now + lease then call('ZADD', holders, now + lease, token) end
  for _, name in ipairs({key, holders}) do
    if call('PTTL', name) < tonumber(lease) then call('PEXPIRE', name, lease) end
  end
  return true
end
local function renew(i, owner, lease)
  local value = checked(redis.pcall('GET', KEYS[i]))
  if value == owner then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
    return true
  end
  return type(value) == 'string' and string.sub(value, 1, ${lua(SHARED_LENGTH)}) == ${lua(SHARED)}
    and renewShared(i, owner, lease, value)
end
local failure
for i = 1, #ARGV / 2 do
  local done, held = pcall(renew, i, ARGV[2 * i - 1], ARGV[2 * i])
  if not done then
    failure = type(held) == 'table' and held.err or held
    unknown[#unknown + 1] = i
  elseif not held then
    gone[#gone + 1] = i
  end
end
if failure and #unknown == #ARGV / 2 then return redis.error_reply(failure) end
return {gone, unknown}
`;
