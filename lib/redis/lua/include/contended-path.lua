-- The contended path: one operation on one key that others want. Either the holder releases the key to its first
-- waiter, or a caller queues for it. It does in place what the rest of the script does, as to create the functions of
-- the rest takes a third of the time of such a call; and it has none of its own, as each takes a hundredth. It leaves
-- all that is not plain to the rest, before it changes anything but the fence counter; and so the last of many
-- operations, as their replies belong together.
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
    -- Whether one that arrived before that is still alive, the rest of the script knows. The arrival is in µs, of
    -- which Lua reads the ms: it takes longer to read a number of more than 15 digits.
    local arrivedMs = isPlain and tonumber(string.sub(waiters[2], 1, -4)) or 0
    local hasJustArrived = arrivedMs + ALIVE_MS >= time[1] * 1000 + math.floor(time[2] / 1000)
    local source = hasJustArrived and string.match(waiting, '^(.*)%.')
    channel = source and string.sub(fenceCounter, 1, -6) .. 'wake:' .. source
    if channel and tryCall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 then
      fenceCount = string.sub(waiting, -1) == LOCAL_WAITERS_MARK and HAND_OFF_FENCES or FENCES
    end
  elseif type(holder) == 'string' and holder ~= token and not string.find(holder, SHARING_PATTERN) then
    local operation, kind = what, 'exclusive'
    if #what > LONGEST_FAST_OPERATION then operation, kind = string.match(what, '^(%a+) 1 (exclusive/%S*)$') end
    -- The first in the queue of a holder with local waiters notifies it.
    local notifies = string.sub(holder, -1) == LOCAL_WAITERS_MARK and hasNoQueue
    if (operation == 'queue' or operation == 'handoff') and not notifies then
      waiter, fenceCount = token .. ' ' .. lease .. ' ' .. kind, '1'
    end
  end

  local last = fenceCount and tryCall('INCRBY', fenceCounter, fenceCount)
  local fence = type(last) == 'number' and last - fenceCount + 1
  if fence and fence <= 1 then
    call('DEL', fenceCounter) -- it was missing, or is not ours: the rest of the script makes a new one
  elseif fence then
    -- Redis would write it as a double, which takes four times as long. In two halves, because a whole number has 32
    -- bits on some machines.
    local low = fence % 1e9
    local digits = string.format('%d%09d', (fence - low) / 1e9, low)
    if channel then
      local others = waiters[3] and ' 1 ' or ' 0 '
      -- Before it is told. A script that lacks a right ends here: what it has told stays told.
      call('SET', key, waiting, 'PX', waiterLease - FIRST_LEASE_MS < 0 and waiterLease or FIRST_LEASE_MS)
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
      call('SET', key, token, 'PX', FIRST_LEASE_MS) -- nobody hears a user that may not PUBLISH
    else
      local added = tryCall('ZADD', queue, 'NX', digits, waiter)
      if type(added) == 'table' then return added end
      call('PEXPIRE', queue, QUEUE_TTL_MS)
      if added == 0 then
        local time, alive = call('TIME'), string.sub(queue, 1, -6) .. 'alive'
        call('ZADD', alive, time[1] * 1000 + math.floor(time[2] / 1000) + ALIVE_MS, token)
        call('PEXPIRE', alive, QUEUE_TTL_MS)
      end
      local ahead = hasNoQueue and 0 or call('ZRANK', queue, waiter)
      if #holder > SHOWN_LENGTH then holder = string.sub(holder, 1, SHOWN_LENGTH) end
      return {holder, call('PTTL', key), ahead, fence}
    end
  end
end
