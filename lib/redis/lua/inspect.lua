-- Reads the holders and the waiters of a key. Changes nothing.
--
-- KEYS[1], KEYS[2]   the key, its queue
-- RETURNS            {value of the key, ms until it expires, {token, ms left of its lease, ..} of those who share it,
--                    live waiters in order}; or nothing, if it is free
local call, queue = redis.call, KEYS[2]
local value = call('GET', KEYS[1])
if not value then return false end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holders, waiters = {}, {}
if string.sub(value, 1, SHARED_LENGTH) == SHARED then
  local found = call('ZRANGE', string.sub(queue, 1, -6) .. 'holders', 0, -1, 'WITHSCORES')
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) > now then
      holders[#holders + 1] = found[i]
      holders[#holders + 1] = found[i + 1] - now
    end
  end
  if #holders == 0 then return false end
else
  value = string.sub(value, 1, SHOWN_LENGTH)
end

-- @include include/arrival.lua

local alive, queued = string.sub(queue, 1, -6) .. 'alive', call('ZRANGE', queue, 0, -1, 'WITHSCORES')
for i = 1, #queued, 2 do
  local token = string.match(queued[i], '^(%S+) %d+ %S+$')
  local aliveUntil = token and tonumber(call('ZSCORE', alive, token) or aliveByArrival(queued[i + 1]))
  if aliveUntil and aliveUntil >= now then waiters[#waiters + 1] = queued[i] end
end
return {value, call('PTTL', KEYS[1]), holders, waiters}
