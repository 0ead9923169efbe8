local calls = (#ARGV - a + 1) / 3
if not behind and #KEYS == first - 1 + 2 * calls then
  local queues = KEYS
  if calls > 1 then
    queues = {}
    for i = 1, calls do queues[i] = KEYS[first + 2 * i - 1] end
  end
  if (calls == 1 and call('EXISTS', queues[first + 1]) or call('EXISTS', unpack(queues))) == 0 then
    local fences, granted = 0, {}
    while a <= #ARGV do
      local what, token = ARGV[a], ARGV[a + 1]
      if #what > LONGEST_VERB then what = string.match(what, '^(%a+) 1 exclusive/') or what end
      if what == 'queue' or what == 'run' or what == 'try' or what == 'ask' then
        local set = redis.pcall('SET', KEYS[first], token, 'NX', 'PX', ARGV[a + 2])
        if not set or set.err then break end
        granted[#granted + 1] = #replies + 1
        replies[#replies + 1] = fences + 1
        fences = fences + ((what == 'run' or (what == 'ask' and string.sub(token, -1) == RUN_MARK)) and FENCES_OF_A_RUN or FENCES)
      elseif what == 'release' and redis.pcall('GET', KEYS[first]) == token then
        replies[#replies + 1] = call('DEL', KEYS[first])
      else
        break
      end
      first = first + 2
      a = a + 3
    end
    if fences > 0 then
      local before = call('INCRBY', note, fences) - fences
      if before <= 0 then -- the note was missing, or not ours
        local time = call('TIME')
        call('SET', note, string.format('%.0f', time[1] * 1000000 + time[2] + fences), 'PX', 86400000)
        before = time[1] * 1000000 + time[2]
      end
      for i = 1, #granted do replies[granted[i]] = replies[granted[i]] + before end
    end
    if a > #ARGV then return calls == 1 and replies[1] or replies end
  end
end
