-- Returns a fence as a reply: negative, if others are queued for one of the operation's keys.
local function fenceReply(lastKey, fence)
  for i = firstKey, lastKey, 2 do
    if call('EXISTS', KEYS[i + 1]) == 1 then return -fence end
  end
  return fence
end

-- Returns what KEYS[i] is to the token; and if the token can't have it, the reply that says why.
--   'free'             the token may have it
--   'held'             the token has it already
--   'busy', reply      {holder, ms left of its lease}; '' and 0 if the caller is to ask again at once
--   'refused', reply   an error; or {"permits:n"}, if it is shared by another number of permits
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
  if not sharing then return 'busy', {string.sub(value, 1, SHOWN_LENGTH), call('PTTL', KEYS[i])} end
  -- A permit is free when the first lease ends, the whole key when the last one does.
  local which = sharing == wanted and 0 or -1
  local holder = call('ZRANGE', holdersOf(i), which, which, 'WITHSCORES')
  return 'busy', {holder[1], math.max(0, holder[2] - now)}
end

-- Acquires the keys of an operation: all or none (try, poll), or in order, and queues for the first that is busy.
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
      -- Whatever the token has of later keys, it would hold out of order: that is how callers deadlock.
      for later = i + 2, lastKey, 2 do
        cancel(later, token, lease, kind)
      end
      if status == 'busy' then
        -- It keeps earlier keys for no longer than it counts as alive: it may be frozen while it waits.
        for earlier = firstKey, i - 2, 2 do
          shorten(earlier, token, math.min(lease, ALIVE_MS))
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

-- Renews an exclusive lock. Returns the first of its new fences, or 0 if the token doesn't hold every key.
local function reserve(lastKey, token, lease)
  for i = firstKey, lastKey, 2 do
    if state(i) ~= token then return 0 end
  end
  for i = firstKey, lastKey, 2 do extend(i, token, lease) end
  return fenceReply(lastKey, mint(HAND_OFF_FENCES))
end
