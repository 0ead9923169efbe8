-- Returns the token of an owner that is to be the writer, and the number of the upgrade that made it that; or the owner
-- as it is, which is a token then.
local function partsOf(owner)
  local token, upgrade = string.match(owner, '^(%S+) (%d+)$')
  return token or owner, tonumber(upgrade)
end

-- Returns whether this upgrade, or a later one, made the holder of a key with this value the writer.
local function isWriter(value, upgrade)
  local writing = string.match(string.match(value, SHARING_PATTERN), '^write:(%d+)$')
  return writing and tonumber(writing) >= upgrade
end

-- Raises what redis.pcall caught, unless it says that the key is no lock: what can't be read is not gone.
local function checked(value)
  if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then error(value) end
  return value
end

local function renewShared(i, owner, lease, value)
  local key, holders, token, upgrade = KEYS[i], holdersOf(i), partsOf(owner)
  if upgrade and not isWriter(value, upgrade) then return false end
  if not now then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  local ends = checked(redis.pcall('ZSCORE', holders, token))
  if type(ends) ~= 'string' or tonumber(ends) <= now then return false end
  -- Out of memory, Redis lets a script ZADD only after it has written something.
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  if tonumber(ends) < now + lease then call('ZADD', holders, now + lease, token) end
  for _, name in ipairs({key, holders}) do
    if call('PTTL', name) < tonumber(lease) then call('PEXPIRE', name, lease) end
  end
  return true
end

-- Returns whether the owner still holds KEYS[i].
local function renew(i, owner, lease)
  local value = checked(redis.pcall('GET', KEYS[i]))
  if value == owner then
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
    return true
  end
  return type(value) == 'string' and string.sub(value, 1, SHARED_LENGTH) == SHARED
    and renewShared(i, owner, lease, value)
end

local failure
for i = 1, #ARGV / 2 do
  local done, held = pcall(renew, i, ARGV[2 * i - 1], ARGV[2 * i])
  if not done then
    failure = type(held) == 'table' and held.err or held
    unknown[#unknown + 1] = i
  elseif not held then
    gone[#gone + 1] = i
  end
end
if failure and #unknown == #ARGV / 2 then return redis.error_reply(failure) end
return {gone, unknown}
