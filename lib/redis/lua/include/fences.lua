-- Fences count up from the server's time in µs. The counter is set to that time when it is missing, and whenever a
-- client asks for it (advance-counter.lua). So fences grow across FLUSHALL and failover; and also when the server's
-- clock is set back, because the counter expires by the very clock it was set by.
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Advances the counter, if that is still to be done: out of memory, Redis refuses it until the script has written
-- something, for example by the DEL of a release.
local function advanceCounter()
  if not advanceTo then return end
  call('SET', fenceCounter, advanceTo, 'PX', counterTtl)
  advanceTo = nil
end

-- Takes this many new fences. Returns the first of them.
local function mint(count)
  advanceCounter()
  local last = call('INCRBY', fenceCounter, count)
  if last - count < 1 then
    call('SET', fenceCounter, string.format('%.0f', time[1] * 1000000 + time[2]), 'PX', COUNTER_TTL_MS)
    last = call('INCRBY', fenceCounter, count)
  end
  return last - count + 1
end

local function fenceFor(token)
  return mint(string.sub(token, -1) == LOCAL_WAITERS_MARK and HAND_OFF_FENCES or FENCES)
end
