local function granted(last, fence)
  for i = first, last, 2 do
    if call('EXISTS', KEYS[i + 1]) == 1 then return -fence end
  end
  return fence
end

-- Lets what the token has of KEYS[i] end after so long. Answers 0 when it is not the token's.
local function shorten(i, token, lease)
  local value, sharing = state(i)
  if not has(i, token, value, sharing) then return 0 end
  if not sharing then return call('PEXPIRE', KEYS[i], lease) end
  call('ZADD', holdersOf(i), now + lease, token)
  lastWithHolders(i, value)
  return 1
end

local function take(verb, last, token, lease, kind)
  local wants = string.match(kind, '^[^/]*')
  local whole = verb == 'try' or verb == 'ask'
  if whole then
    for i = first, last, 2 do
      local found = obstacle(i, token, wants)
      if found then
        if found[2] then
          if verb == 'ask' then tell(found[1], 'wanted ' .. found[1]) end
          found[3], found[4] = call('ZCARD', KEYS[i + 1]), 0
        end
        return found
      end
    end
  end
  for i = first, last, 2 do
    local found = obstacle(i, token, wants)
    if found then
      -- Whatever it has of later keys, it would hold them out of order: that is how callers deadlock.
      for later = i + 2, last, 2 do
        giveUp(later, token, lease, kind)
      end
      if found[2] then
        -- What it has already it keeps for no longer than it counts as alive: it may stand still while it waits.
        for earlier = first, i - 2, 2 do
          shorten(earlier, token, math.min(lease, ALIVE_MS))
        end
        found[3], found[4] = join(i, token, lease, kind, found[1], verb == 'deaf')
      else
        giveUp(i, token, lease, kind)
      end
      return found
    end
    if found == false then
      if guesses then call('ZREM', aliveOf(i), '?') end
      extend(i, token, lease)
    else
      give(i, token, lease, wants)
    end
    leave(i, token, lease, kind)
  end
  return granted(last, fenceFor(token))
end

local function reserve(last, token, lease)
  for i = first, last, 2 do
    if redis.pcall('GET', KEYS[i]) ~= token then return 0 end
  end
  for i = first, last, 2 do extend(i, token, lease) end
  return granted(last, mint(FENCES_OF_A_RUN))
end

-- Which upgrade made the one who has a key its writer (0: none, it came as one). Nothing for one who shares it.
local function upgradeOf(sharing)
  return sharing and tonumber(string.match(sharing, '^write:(%d+)$')) or (not sharing and 0 or nil)
end

-- Lets a holder's part of KEYS[i] end after so long. From here on it is not the token's any more: whatever it asked for may come late.
local function keep(i, token, lease)
  local value, sharing = state(i)
  local kept = token .. KEPT_MARK
  if has(i, kept, value, sharing) then return 1 end
  if not has(i, token, value, sharing) then return 0 end
  if not sharing then
    -- Out of memory, Redis lets a script SET only after it has written something.
    call('PEXPIRE', KEYS[i], lease)
    call('SET', KEYS[i], kept, 'PX', lease)
    return 1
  end
  call('ZREM', holdersOf(i), token)
  call('ZADD', holdersOf(i), now + lease, kept)
  if upgradeOf(sharing) then value = SHARED_READ end
  lastWithHolders(i, value)
  if upgradeOf(sharing) then handOver(i, nil, value, 'read', 1) end
  return 1
end

-- The last upgrade of the token that is noted to be over.
local function lastOver(value, token)
  for number, who in string.gmatch(value, ' (%d+) (%S+)') do
    if who == token then return tonumber(number) end
  end
  return 0
end

-- Notes on KEYS[i], which the token reads, that its upgrades up to this one are over. Forgets those of tokens that are gone.
local function noteOver(i, token, number)
  local value = call('GET', KEYS[i])
  if lastOver(value, token) >= number then return end
  local noted = SHARED_READ_AND .. number .. ' ' .. token
  for other, who in string.gmatch(value, ' (%d+) (%S+)') do
    if who ~= token and call('ZSCORE', holdersOf(i), who) then noted = noted .. ' ' .. other .. ' ' .. who end
  end
  lastWithHolders(i, noted)
end

-- A reader that is alone becomes the writer, unless this upgrade is over already, or a later one has begun: then it comes late.
local function upgrade(last, token, lease, number)
  number = tonumber(number)
  local refused = false
  for i = first, last, 2 do
    local value, sharing, count = state(i)
    local before = upgradeOf(sharing)
    if not has(i, token, value, sharing) then
      refused = true
    elseif before then
      refused = refused or before > number
    else
      refused = refused or sharing ~= 'read' or count > 1 or lastOver(value, token) >= number
    end
  end
  for i = first, last, 2 do
    local value, sharing = state(i)
    if not refused then
      local lasts = math.max(lease, call('PTTL', KEYS[i]))
      call('DEL', holdersOf(i))
      call('ZADD', holdersOf(i), now + lasts, token)
      lastWithHolders(i, SHARED_WRITE .. number)
    elseif sharing == 'read' and has(i, token, value, sharing) then
      noteOver(i, token, number)
    end
  end
  return refused and 0 or granted(last, fenceFor(token))
end

-- The writer becomes a reader, and lets in the readers that come next; unless a later upgrade made it the writer.
local function downgrade(i, token, _, number)
  local value, sharing = state(i)
  if not has(i, token, value, sharing) then return 0 end
  local writing = upgradeOf(sharing)
  number = tonumber(number) or 0
  if writing and writing > number then return 1 end
  if not sharing then give(i, token, call('PTTL', KEYS[i]), 'read') end
  if sharing == 'read' or writing then noteOver(i, token, number) end
  if writing then handOver(i, nil, true, 'read', 1) end
  return 1
end

-- Takes KEYS[i] from a holder: from one that shares it by its token, else from the token with this SHA1; and tells it who did so, and why.
local function force(i, token, _, forced)
  local value, sharing = state(i)
  if not sharing then
    if type(value) ~= 'string' or redis.sha1hex(value) ~= token then return 0 end
    token = value
  end
  tell(token, 'lost ' .. token .. ' ' .. forced)
  return free(i, token)
end
