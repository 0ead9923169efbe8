-- Lets the token's part of KEYS[i] end after this time, and takes it from the token: whatever it asks for from here on
-- is late.
local function keep(i, token, lease)
  local value, sharing = state(i)
  local kept = token .. KEPT_MARK
  if not holds(i, token, value, sharing) then return holds(i, kept, value, sharing) and 1 or 0 end
  if sharing then
    call('ZREM', holdersOf(i), token)
    call('ZADD', holdersOf(i), now + lease, kept)
    if upgradeOf(sharing) then value = SHARED_READ end
    writeShared(i, value)
    if upgradeOf(sharing) then handOff(i, nil, value, 'read', 1) end
  else
    -- Out of memory, Redis lets a script SET only after it has written something.
    call('PEXPIRE', KEYS[i], lease)
    call('SET', KEYS[i], kept, 'PX', lease)
  end
  -- The reply to the first waiter says when the time is over.
  offer(i, 0)
  return 1
end

-- Takes KEYS[i] from a holder, and tells it who did so and why. A holder that shares it is named by its token, an
-- exclusive one by the SHA1 of its token, because another tool may have written anything there.
local function force(i, token, _, forced)
  local value, sharing = state(i)
  if not sharing then
    if type(value) ~= 'string' or redis.sha1hex(value) ~= token then return 0 end
    token = value
  end
  notify(token, 'lost ' .. token .. ' ' .. forced)
  return release(i, token)
end
