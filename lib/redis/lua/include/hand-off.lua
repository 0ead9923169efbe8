-- Hands a key to its waiters, in the same step in which it becomes free.
--
-- The first live waiter gets the key, and so do those behind it that may share it; a message tells each of their
-- processes. If a process is not subscribed, it is gone or has just lost its subscription: its waiters are silent. They
-- are passed over, and up to MAX_PASSED keep their places for as long as they count as alive. Only a waiter that said
-- that it can't be notified gets the key all the same, for a moment: it finds it when it asks again. In a cluster that
-- goes for every waiter, as nobody knows who is subscribed. A free key with a queue, left by a holder that crashed,
-- belongs to its first waiter, whoever asks.

-- In this call, by queue: how many waiters were let in to share its key, and whether one of them was offered it.
local letIn, offered = {}, {}
local dropped = 0 -- how many waiters that are gone this call has dropped
local silentSources -- the processes that this call found silent; made when there is one

-- Asks the waiter at this position, or else the last one, to ask for KEYS[i], which lets in those before it. If nobody
-- hears that, one of them asks before long.
local function offer(i, position, asker)
  if offered[KEYS[i + 1]] then return end
  offered[KEYS[i + 1]] = true
  local waiter = call('ZRANGE', KEYS[i + 1], position, position)[1] or call('ZRANGE', KEYS[i + 1], -1, -1)[1]
  local token = waiter and readWaiter(waiter)
  if token and token ~= asker then notify(token, 'offered ' .. token) end
end

-- Drops a waiter that is gone. Returns false when this call has dropped enough: the next one goes on.
local function drop(i, waiter, token, lease, kind)
  if dropped >= MAX_DROPPED then return false end
  dropped = dropped + 1
  if token then dequeue(i, token, lease, kind) else call('ZREM', KEYS[i + 1], waiter) end
  return true
end

-- Leaves the rest of the queue of KEYS[i] to another call: offers the key to its last waiter, and returns 'unfinished'.
-- If no waiter is alive, deletes the queue and returns nil.
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

-- Takes from the token what it was granted of KEYS[i].
local function takeBack(i, token, wanted)
  if wanted == 'exclusive' then return call('DEL', KEYS[i]) end
  call('ZREM', holdersOf(i), token)
  writeShared(i, call('GET', KEYS[i]))
end

-- Grants KEYS[i], whose state is given, to its live waiters in order, for as long as the next one may have it. Stops at
-- the asker; and after many, because Redis does nothing else meanwhile. Returns the new state, and what keeps the asker
-- waiting: 'ahead' for a waiter ahead of it that has to wait, 'unfinished' if it is too early to say. Passes over each
-- silent waiter only once in a call.
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
        if (letIn[queue] or 0) > letInBefore then offer(i, position + MAX_LET_IN, asker) end
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
          if value and (letIn[queue] or 0) >= MAX_LET_IN then
            offer(i, position + MAX_LET_IN, asker)
            return value, sharing, count, 'ahead'
          end
          others = call('ZCARD', queue) > 1 and 1 or 0
          local granted = string.format('granted %s %s %s %.0f %d ', token, lease, kind, fenceFor(token), others)
          -- Before it is told. A script that lacks a right ends here: what it has told stays told.
          local isTold = channel and not deliveryIsUnknown
          grant(i, token, math.min(lease, isTold and FIRST_LEASE_MS or UNCONFIRMED_LEASE_MS), wanted)
          heard = channel and publish(channel, granted .. KEYS[i])
          if not (heard or isUnsubscribed) then takeBack(i, token, wanted) end
        end
        if heard or isUnsubscribed then
          dequeue(i, token, lease, kind)
          if deliveryIsUnknown and others == 1 then noteUnconfirmed(i) end
          if wanted == 'exclusive' then return token end
          value, sharing, count = true, wanted, (count or 0) + 1
          letIn[queue] = (letIn[queue] or 0) + 1
        elseif position < MAX_PASSED then
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
    page = QUEUE_PAGE
  end
end

-- Takes KEYS[i] from the token, and hands it off. Returns 0 if the token didn't hold it.
local function release(i, token)
  local value, sharing, count = state(i)
  if not holds(i, token, value, sharing) then return 0 end
  if sharing then
    call('ZREM', holdersOf(i), token)
    writeShared(i, value)
    value, count = count > 1 and value, count - 1
    handOff(i, nil, value, sharing, count)
  else
    -- Out of memory, Redis lets a script do what the next waiter needs only after it has written something.
    call('DEL', KEYS[i])
    handOff(i)
  end
  return 1
end

-- Takes the token out of the queue of KEYS[i], and KEYS[i] from it. Waiters behind it may be able to share the key now.
local function cancel(i, token, lease, kind)
  local wasQueued, released = dequeue(i, token, lease, kind), release(i, token)
  if wasQueued and released == 0 then handOff(i, nil, state(i)) end
  return released
end
