-- The fast path: operations on one key each, none of which has a queue. Most calls need no more, and to create the
-- functions of the rest of the script takes time. Leaves what it can't do, from ARGV[nextArg] on, to the rest of the
-- script. One operation has a branch of its own, which makes no tables: an uncontended lock takes 2 % less time. In a
-- cluster, an operation may have no keys.
local isLone = #ARGV == nextArg + 2 and #KEYS == firstKey + 1
local hasNoQueue = not advanceTo and isLone and call('EXISTS', KEYS[firstKey + 1]) == 0
if hasNoQueue then
  local operation, token, key = ARGV[nextArg], ARGV[nextArg + 1], KEYS[firstKey]
  if #operation > LONGEST_FAST_OPERATION then
    operation = string.match(operation, '^(%a+) 1 exclusive/') or operation
  end
  if operation == 'queue' or operation == 'handoff' or operation == 'try' or operation == 'poll' then
    local set = tryCall('SET', key, token, 'NX', 'PX', ARGV[nextArg + 2])
    if set and not set.err then
      local isHandOff = operation == 'handoff'
        or (operation ~= 'queue' and string.sub(token, -1) == LOCAL_WAITERS_MARK)
      local count = isHandOff and HAND_OFF_FENCES or FENCES
      local last = call('INCRBY', fenceCounter, count)
      if last - count > 0 then return last - count + 1 end
      call('DEL', fenceCounter) -- it was missing, or is not ours: the rest of the script makes a new one
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
      if #operation > LONGEST_FAST_OPERATION then
        operation = string.match(operation, '^(%a+) 1 exclusive/') or operation
      end
      if operation == 'queue' or operation == 'handoff' or operation == 'try' or operation == 'poll' then
        local set = tryCall('SET', key, token, 'NX', 'PX', ARGV[nextArg + 2])
        if not set or set.err then break end
        grantCount = grantCount + 1
        granted[grantCount] = i
        replies[i] = fences + 1
        local isHandOff = operation == 'handoff'
          or (operation ~= 'queue' and string.sub(token, -1) == LOCAL_WAITERS_MARK)
        fences = fences + (isHandOff and HAND_OFF_FENCES or FENCES)
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
      if before <= 0 then -- the counter was missing, or is not ours
        local time = call('TIME')
        call('SET', fenceCounter, string.format('%.0f', time[1] * 1000000 + time[2] + fences), 'PX', COUNTER_TTL_MS)
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
