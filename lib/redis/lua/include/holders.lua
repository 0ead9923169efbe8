local function holdersOf(i)
  return (string.gsub(KEYS[i + 1], 'queue$', 'holders'))
end

-- What KEYS[i] holds (false: nothing; a table: an error); and when it is shared, how, and by how many whose leases last.
local function state(i)
  local value = redis.pcall('GET', KEYS[i])
  local sharing = type(value) == 'string' and string.match(value, SHARING_PATTERN)
  if not sharing then return value end
  local holders = holdersOf(i)
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local count = call('ZCARD', holders)
  if count > 0 then return value, sharing, count end
  call('DEL', KEYS[i])
  return false
end

-- Whether the token has KEYS[i], whose state is given.
local function has(i, token, value, sharing)
  if sharing then return call('ZSCORE', holdersOf(i), token) and true end
  return value == token
end

-- Whether one more may have it who wants to share it like this.
local function joins(wants, sharing, count)
  if wants ~= sharing then return false end
  return wants == 'read' or count < tonumber(string.match(wants, '%d+'))
end

-- Lets a shared KEYS[i] last as long as the longest lease of those who share it; drops it with the last of them.
local function lastWithHolders(i, value)
  local last = call('ZRANGE', holdersOf(i), -1, -1, 'WITHSCORES')[2]
  if not last then return call('DEL', KEYS[i]) end
  call('SET', KEYS[i], value, 'PX', last - now)
  call('PEXPIRE', holdersOf(i), last - now)
end

-- Gives the free KEYS[i], or a part of the shared one.
local function give(i, token, lease, wants)
  if wants == 'exclusive' then return call('SET', KEYS[i], token, 'PX', lease) end
  local fresh, value = SHARED .. wants, call('GET', KEYS[i])
  if not value or string.match(value, '^%S*') ~= fresh then
    value = fresh
    call('DEL', holdersOf(i))
  end
  call('ZADD', holdersOf(i), now + lease, token)
  lastWithHolders(i, value)
end

-- Pushes the end of what the token has of KEYS[i] out, never nearer, and leaves the rest as it is: it may ask late.
local function extend(i, token, lease)
  local value, sharing = state(i)
  if not sharing then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
  elseif tonumber(call('ZSCORE', holdersOf(i), token)) < now + lease then
    call('ZADD', holdersOf(i), now + lease, token)
    lastWithHolders(i, value)
  end
end
