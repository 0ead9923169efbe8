local behind, noteLasts -- what the note is still to be brought up to; and how long it is to last then, in ms
if ARGV[1] == 'clock' or ARGV[1] == 'raise' then
  local least, time = ARGV[3], call('TIME')
  time = time[1] * 1000000 + time[2]
  if ARGV[1] == 'clock' then least = string.format('%.0f', math.max(least, time)) end
  -- Without it, fences begin at the time again: so it must be there until that is past it.
  noteLasts = string.format('%.0f', 86400000 + math.max(0, least - time) / 1000)
  -- What can't be counted on, as somebody else has written it, is as good as gone: the time is above all that were given.
  local last = redis.pcall('GET', note)
  last = last == false and 0 or type(last) == 'string' and string.find(last, '^%d+$') and tonumber(last)
  if (not last or last >= 2^53 or last < tonumber(least)) and redis.pcall('SET', note, least, 'PX', noteLasts).err then behind = least end
  a = 4
end
