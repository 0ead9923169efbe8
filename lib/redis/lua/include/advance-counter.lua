-- Advances the fence counter, if the call begins with "clock" or "raise": to the server's time ("clock" only), and at
-- least to the number in place of the lease. Clients do so after each reconnect and every second.
local advanceTo, counterTtl -- while the counter is still to be advanced: to what, and how many ms it then lasts
if ARGV[1] == 'clock' or ARGV[1] == 'raise' then
  local least, isClock, last = ARGV[3], ARGV[1] == 'clock', tryCall('GET', fenceCounter)
  -- Without the right to read it, it would go back to the time, which may be behind it.
  if type(last) == 'table' and not string.find(last.err, 'WRONGTYPE') then return last end
  -- A value that can't be counted on, because somebody else wrote it, counts as missing: the time is above all fences
  -- given.
  last = last == false and 0 or type(last) == 'string' and string.find(last, '^%d+$') and tonumber(last)
  if isClock or not last or last >= 2^53 or last < tonumber(least) then
    local time = call('TIME')
    time = time[1] * 1000000 + time[2]
    if isClock then least = string.format('%.0f', math.max(least, time)) end
    -- Without a counter, fences begin at the time again. So it must last until the time has passed it.
    counterTtl = string.format('%.0f', COUNTER_TTL_MS + math.max(0, least - time) / 1000)
    local isBehind = not last or last >= 2^53 or last < tonumber(least)
    if isBehind and tryCall('SET', fenceCounter, least, 'PX', counterTtl).err then advanceTo = least end
  end
  nextArg = 4
end
