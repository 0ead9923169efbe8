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
  local found = call('ZRANGE', (string.gsub(queue, 'queue$', 'holders')), 0, -1, 'WITHSCORES')
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
local alive = string.gsub(queue, 'queue$', 'alive')
for _, waiter in ipairs(call('ZRANGE', queue, 0, -1)) do
  local token = string.match(waiter, '^(%S+) %d+ %S+$')
  local aliveUntil = token and call('ZSCORE', alive, token)
  if aliveUntil and tonumber(aliveUntil) >= now then waiters[#waiters + 1] = waiter end
end
return {value, call('PTTL', KEYS[1]), holders, waiters}
