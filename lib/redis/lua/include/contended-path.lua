-- The contended path: one operation on one key that others want. Either the holder releases the key to its first
-- waiter, or a caller queues for it. It does in place what the rest of the script does, as to create the functions of
-- the rest takes a third of the time of such a call. It leaves all that is not plain to the rest, before it changes
-- anything but the fence counter; and so the last of many operations, as their replies belong together.
if not advanceTo and isLone then
  local what, token, lease = ARGV[nextArg], ARGV[nextArg + 1], ARGV[nextArg + 2]
  local key, queue = KEYS[firstKey], KEYS[firstKey + 1]
  local alive, holder = string.sub(queue, 1, -6) .. 'alive', redis.pcall('GET', key)

  -- Takes new fences. Returns the first of them; nil when the counter was missing, or Redis refuses.
  local function mintOrNil(count)
    local last = redis.pcall('INCRBY', fenceCounter, count)
    if type(last) == 'table' then return nil end
    if last - count > 0 then return last - count + 1 end
    call('DEL', fenceCounter)
  end

  if what == 'release' and holder == token then
    local waiters, time = redis.pcall('ZRANGE', queue, '0', '1', 'WITHSCORES'), call('TIME')
    local waiter, now = waiters[1] or '', time[1] * 1000 + math.floor(time[2] / 1000)
    local waiting, waiterLease, kind = string.match(waiter, '^(%S+) ([1-9]%d*) (exclusive%S*)$')
    local isPlain = waiting and #waiterLease <= 13 and string.find(kind .. '/', '^exclusive/')
    -- Whether one that arrived before that is still alive, the rest of the script knows.
    local hasJustArrived = isPlain and math.floor(waiters[2] / 1000) + ALIVE_MS >= now
    local source = hasJustArrived and string.match(waiting, '^(.*)%.')
    local channel = source and string.sub(fenceCounter, 1, -6) .. 'wake:' .. source
    if channel and redis.pcall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 then
      local fence = mintOrNil(string.sub(waiting, -1) == LOCAL_WAITERS_MARK and HAND_OFF_FENCES or FENCES)
      local others = waiters[3] and 1 or 0
      local granted = fence and string.format('granted %s %s %s %.0f %d ', waiting, waiterLease, kind, fence, others)
      local heard = granted and redis.pcall('PUBLISH', channel, granted .. key)
      if type(heard) == 'number' then
        call('SET', key, waiting, 'PX', waiterLease - FIRST_LEASE_MS < 0 and waiterLease or FIRST_LEASE_MS)
        if waiters[3] then
          call('ZREM', queue, waiter)
          call('ZREM', alive, waiting)
        else
          call('DEL', queue, alive)
        end
        return 1
      end
    end
  elseif type(holder) == 'string' and holder ~= token and not string.find(holder, SHARING_PATTERN) then
    local operation, kind = string.match(what, '^(%a+) 1 (exclusive/%S*)$')
    operation, kind = operation or what, kind or 'exclusive'
    -- The first in the queue of a holder with local waiters notifies it.
    local notifies = string.sub(holder, -1) == LOCAL_WAITERS_MARK and hasNoQueue
    if (operation == 'queue' or operation == 'handoff') and not notifies then
      local leaseLeft, waiter, asked = call('PTTL', key), token .. ' ' .. lease .. ' ' .. kind, mintOrNil('1')
      local added = asked and redis.pcall('ZADD', queue, 'NX', asked, waiter)
      if type(added) == 'table' then return added end
      if added then
        call('PEXPIRE', queue, QUEUE_TTL_MS)
        if added == 0 then
          local time = call('TIME')
          call('ZADD', alive, time[1] * 1000 + math.floor(time[2] / 1000) + ALIVE_MS, token)
          call('PEXPIRE', alive, QUEUE_TTL_MS)
        end
        return {string.sub(holder, 1, SHOWN_LENGTH), leaseLeft, hasNoQueue and 0 or call('ZRANK', queue, waiter), asked}
      end
    end
  end
end
