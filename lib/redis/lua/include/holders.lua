-- Who holds a key, and who else may. In all functions, KEYS[i] is the key of a lock and KEYS[i + 1] its queue.
--
-- An exclusive lock is its token under the key. A shared lock is SHARED .. <how it is shared> under the key, and the
-- tokens of its holders in a sorted set beside it, each with the end of its own lease as its score. It is shared as
-- "read", as "permits:3", or as "write:3": the last is shared with nobody and belongs to a reader whose third upgrade
-- made it the writer. After "read" come notes of upgrades that have ended: " 3 <token>". A lock that was given back,
-- but is kept for some time, stands there as its token with KEPT_MARK: it belongs to nobody.
local function holdersOf(i)
  return string.sub(KEYS[i + 1], 1, -6) .. 'holders'
end

-- Returns what KEYS[i] contains (false: nothing; a table: it is no lock); if it is shared, also how, and by how many
-- holders whose leases last.
local function state(i)
  local value = tryCall('GET', KEYS[i])
  if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then error(value) end
  local sharing = type(value) == 'string' and string.match(value, SHARING_PATTERN)
  if not sharing then return value end
  local holders = holdersOf(i)
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local count = call('ZCARD', holders)
  if count > 0 then return value, sharing, count end
  call('DEL', KEYS[i])
  return false
end

-- Returns whether the token holds KEYS[i], whose state is given.
local function holds(i, token, value, sharing)
  if sharing then return call('ZSCORE', holdersOf(i), token) and true end
  return value == token
end

-- Returns whether a key that is shared like this has room for one more holder that wants to share it.
local function hasRoom(wanted, sharing, count)
  if wanted ~= sharing then return false end
  return wanted == 'read' or count < tonumber(string.match(wanted, '^permits:(%d+)') or 0)
end

-- Writes the shared KEYS[i], which lasts as long as the longest lease of its holders. Deletes it when it has none.
local function writeShared(i, value)
  local last = call('ZRANGE', holdersOf(i), -1, -1, 'WITHSCORES')[2]
  if not last then return call('DEL', KEYS[i]) end
  call('SET', KEYS[i], value, 'PX', last - now)
  call('PEXPIRE', holdersOf(i), last - now)
end

-- Gives the token KEYS[i], which is free, or its share of it.
local function grant(i, token, lease, wanted)
  if wanted == 'exclusive' then return call('SET', KEYS[i], token, 'PX', lease) end
  local fresh, value = SHARED .. wanted, call('GET', KEYS[i])
  if not value or string.match(value, '^%S*') ~= fresh then
    value = fresh
    call('DEL', holdersOf(i))
  end
  call('ZADD', holdersOf(i), now + lease, token)
  writeShared(i, value)
end

-- Extends the token's lease of KEYS[i]. Never shortens it: the caller may have asked long ago.
local function extend(i, token, lease)
  local value, sharing = state(i)
  if not sharing then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
  elseif tonumber(call('ZSCORE', holdersOf(i), token)) < now + lease then
    call('ZADD', holdersOf(i), now + lease, token)
    writeShared(i, value)
  end
end

-- Lets the token's lease of KEYS[i] end after this time. Returns 0 if the token doesn't hold it.
local function shorten(i, token, lease)
  local value, sharing = state(i)
  if not holds(i, token, value, sharing) then return 0 end
  if not sharing then return call('PEXPIRE', KEYS[i], lease) end
  call('ZADD', holdersOf(i), now + lease, token)
  writeShared(i, value)
  return 1
end
