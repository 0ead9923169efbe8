-- Readers that become the writer, and writers that become a reader. A holder counts its upgrades, so that an upgrade
-- which arrives after its own downgrade, or after a later upgrade, does nothing.

-- Returns which upgrade made its holder the writer (0: none, it came as the writer). Returns nil for a key that is
-- shared.
local function upgradeOf(sharing)
  return sharing and tonumber(string.match(sharing, '^write:(%d+)$')) or (not sharing and 0 or nil)
end

-- Returns the last upgrade of the token that is noted as ended.
local function lastEndedUpgrade(value, token)
  for number, reader in string.gmatch(value, ' (%d+) (%S+)') do
    if reader == token then return tonumber(number) end
  end
  return 0
end

-- Notes on KEYS[i], which the token reads, that its upgrades up to this one have ended. Forgets the notes of tokens
-- that are gone.
local function noteEndedUpgrade(i, token, number)
  local value = call('GET', KEYS[i])
  if lastEndedUpgrade(value, token) >= number then return end
  local noted = SHARED_READ .. ' ' .. number .. ' ' .. token
  for other, reader in string.gmatch(value, ' (%d+) (%S+)') do
    if reader ~= token and call('ZSCORE', holdersOf(i), reader) then noted = noted .. ' ' .. other .. ' ' .. reader end
  end
  writeShared(i, noted)
end

-- Makes the only reader the writer; unless this upgrade has ended already or a later one has begun: then it is a late
-- copy.
local function upgrade(lastKey, token, lease, number)
  number = tonumber(number)
  local isRefused = false
  for i = firstKey, lastKey, 2 do
    local value, sharing, count = state(i)
    local before = upgradeOf(sharing)
    if not holds(i, token, value, sharing) then
      isRefused = true
    elseif before then
      isRefused = isRefused or before > number
    else
      isRefused = isRefused or sharing ~= 'read' or count > 1 or lastEndedUpgrade(value, token) >= number
    end
  end
  for i = firstKey, lastKey, 2 do
    local value, sharing = state(i)
    if not isRefused then
      local ttl = math.max(lease, call('PTTL', KEYS[i]))
      call('DEL', holdersOf(i))
      call('ZADD', holdersOf(i), now + ttl, token)
      writeShared(i, SHARED_WRITE .. number)
    elseif sharing == 'read' and holds(i, token, value, sharing) then
      noteEndedUpgrade(i, token, number)
    end
  end
  return isRefused and 0 or fenceReply(lastKey, fenceFor(token))
end

-- Makes the writer a reader, and lets in the readers that come next; unless a later upgrade made it the writer.
local function downgrade(i, token, _, number)
  local value, sharing = state(i)
  if not holds(i, token, value, sharing) then return 0 end
  local writing = upgradeOf(sharing)
  number = tonumber(number) or 0
  if writing and writing > number then return 1 end
  if not sharing then grant(i, token, call('PTTL', KEYS[i]), 'read') end
  if sharing == 'read' or writing then noteEndedUpgrade(i, token, number) end
  if writing then handOff(i, nil, true, 'read', 1) end
  return 1
end
