-- Readers that become the writer, and writers that become a reader. A holder counts its upgrades, so that an upgrade
-- which arrives after its own downgrade, or after a later upgrade, does nothing.

-- Returns which upgrade made its holder the writer (0: none, it came as the writer). Returns nil for a key that is
-- shared.
local function upgradeOf(sharing)
  return sharing and tonumber(string.match(sharing, '^write:(%d+)$')) or (not sharing and 0 or nil)
end

-- Returns the last upgrade of the token that is noted as ended; and where its note begins and ends, if there is one.
-- Reads no other note: each of a thousand readers may have one.
local function lastEndedUpgrade(value, token)
  local isLast = string.sub(value, -#token - 1) == ' ' .. token
  local before = isLast and #value - #token or string.find(value, ' ' .. token .. ' ', 1, true)
  local number = before and string.match(string.sub(value, math.max(1, before - 20), before - 1), ' (%d+)$')
  if not number then return 0 end
  return tonumber(number), before - #number - 1, before + #token
end

-- Notes on KEYS[i], which the token reads, that its upgrades up to this one have ended. Forgets the notes of tokens
-- that are gone: looks at the first two each time, and moves those that it keeps to the end, so none is left out.
local function noteEndedUpgrade(i, value, token, number)
  local noted, from, to = lastEndedUpgrade(value, token)
  if noted >= number then return end
  local rest, kept = string.find(value, ' ', 1, true) or #value + 1, ''
  if from then value = string.sub(value, 1, from - 1) .. string.sub(value, to + 1) end
  for _ = 1, 2 do
    local note, reader, next = string.match(value, '^( %d+ (%S+))()', rest)
    if not note then break end
    if call('ZSCORE', holdersOf(i), reader) then kept = kept .. note end
    rest = next
  end
  writeShared(i, SHARED_READ .. string.sub(value, rest) .. kept .. ' ' .. number .. ' ' .. token)
end

-- Makes the only reader the writer; unless this upgrade has ended already or a later one has begun: then it is a late
-- copy.
local function upgrade(lastKey, token, lease, number)
  number = tonumber(number)
  local isRefused, values = false, {}
  for i = firstKey, lastKey, 2 do
    local value, sharing, count = state(i)
    local before, isOurs = upgradeOf(sharing), holds(i, token, value, sharing)
    if isOurs and sharing == 'read' then values[i] = value end
    if not isOurs then
      isRefused = true
    elseif before then
      isRefused = isRefused or before > number
    else
      isRefused = isRefused or sharing ~= 'read' or count > 1 or lastEndedUpgrade(value, token) >= number
    end
  end
  for i = firstKey, lastKey, 2 do
    if not isRefused then
      local ttl = math.max(lease, call('PTTL', KEYS[i]))
      call('DEL', holdersOf(i))
      call('ZADD', holdersOf(i), now + ttl, token)
      writeShared(i, SHARED_WRITE .. number)
    elseif values[i] then
      noteEndedUpgrade(i, values[i], token, number)
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
  if sharing == 'read' or writing then noteEndedUpgrade(i, call('GET', KEYS[i]), token, number) end
  if writing then handOff(i, nil, true, 'read', 1) end
  return 1
end
