-- The queue of a key: a sorted set of waiters, "<token> <lease> <kind>", by the fence that each arrived with. Another
-- sorted set ("…:alive") says until when a token counts as alive; its waiter asks again before that. A fraction in it
-- marks a waiter whose process can't be notified. A waiter that can be notified gets an entry only when it asks again:
-- until then, its fence says when it arrived. To write no entry saves a tenth of the time of a hand-off.
local function aliveOf(i)
  return string.sub(KEYS[i + 1], 1, -6) .. 'alive'
end

-- In this call, by queue: how many waiters at its head are silent (see hand-off.lua), themselves, and their tokens.
local passed = {}

-- Returns the token, lease and kind of a waiter, and how it wants to share the key. Returns nil for what is no waiter:
-- left in the queue, that would make everybody fail who comes by.
local function readWaiter(waiter)
  local token, lease, kind = string.match(waiter, '^(%S+) (%d+) (%S+)$')
  if not token or #lease > 13 or tonumber(lease) < 1 then return nil end
  local wanted = string.match(kind, '^[^/]*')
  local isKnown = wanted == 'exclusive' or wanted == 'read' or string.find(wanted, '^permits:%d+$')
  if isKnown then return token, lease, kind, wanted end
end

-- Puts the token into the queue of KEYS[i], or keeps its place. Returns how many are ahead of it, and a fence below
-- that of every later grant.
local function enqueue(i, token, lease, kind, holder, isUnsubscribed)
  local queue, alive, waiter, asked = KEYS[i + 1], aliveOf(i), token .. ' ' .. lease .. ' ' .. kind, mint('1')
  local added = call('ZADD', queue, 'NX', asked, waiter)
  call('PEXPIRE', queue, QUEUE_TTL_MS)
  if added == 0 or deliveryIsUnknown or isUnsubscribed then
    call('ZADD', alive, now + ALIVE_MS + (isUnsubscribed and 0.5 or 0), token)
    call('PEXPIRE', alive, QUEUE_TTL_MS)
  end
  if added == 1 and string.sub(holder, -1) == LOCAL_WAITERS_MARK and call('ZCARD', queue) == 1 then
    notify(holder, 'contended ' .. holder)
  end
  local ahead, silent = call('ZRANK', queue, waiter), passed[queue]
  if silent and ahead < silent.count and (isUnsubscribed or added == 1) then passed[queue] = nil end
  return ahead, asked
end

-- Takes the token out of the queue of KEYS[i]. Returns whether it was in it.
local function dequeue(i, token, lease, kind)
  local queue, waiter = KEYS[i + 1], token .. ' ' .. lease .. ' ' .. kind
  if call('ZREM', queue, waiter) == 0 then return false end
  local silent = passed[queue]
  if silent and silent[waiter] then silent.count, silent[token], silent[waiter] = silent.count - 1, nil, nil end
  call('ZREM', aliveOf(i), token)
  -- Of an empty queue, only the note of an unconfirmed grant is left.
  if deliveryIsUnknown and call('EXISTS', queue) == 0 then call('DEL', aliveOf(i)) end
  return true
end

-- Notes since when KEYS[i] belongs to a token whose process may not have heard of it, as the waiter "?", which no token
-- can be. The note goes when the holder asks for the key.
local function noteUnconfirmed(i)
  local since = call('ZSCORE', aliveOf(i), '?')
  if since and now - since < UNCONFIRMED_LEASE_MS then return end
  call('ZADD', aliveOf(i), now, '?')
  call('PEXPIRE', aliveOf(i), QUEUE_TTL_MS)
end

-- Returns whether a waiter has been silent since KEYS[i] was granted to somebody who never asked for it: a waiter that
-- lives has asked again meanwhile.
local function isSilent(i, aliveUntil)
  local since = call('ZSCORE', aliveOf(i), '?')
  return since and now - since >= UNCONFIRMED_LEASE_MS and aliveUntil - ALIVE_MS < tonumber(since)
end
