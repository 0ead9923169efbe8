import { FENCES_OF_A_RUN } from '../../../store/lock-store.js';

/** What each operation does with all of its keys, KEYS[first] to KEYS[last], every second one. */
export const VERBS = `
local function granted(last, fence)
  for i = first, last, 2 do
    if call('EXISTS', KEYS[i + 1]) == 1 then return -fence end
  end
  return fence
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
        found[3], found[4] = join(i, token, lease, kind, found[1], verb == 'deaf')
      else
        giveUp(i, token, lease, kind)
      end
      return found
    end
    if found == false then extend(i, token, lease) else give(i, token, lease, wants) end
    leave(i, token, lease, kind)
  end
  return granted(last, fenceFor(token))
end

local function reserve(last, token, lease)
  for i = first, last, 2 do
    if redis.pcall('GET', KEYS[i]) ~= token then return 0 end
  end
  for i = first, last, 2 do extend(i, token, lease) end
  return granted(last, mint(${FENCES_OF_A_RUN}))
end

-- Lets a holder's part of KEYS[i] end after so long.
local function keep(i, token, lease)
  local value, sharing = state(i)
  if not has(i, token, value, sharing) then return 0 end
  if not sharing then return call('PEXPIRE', KEYS[i], lease) end
  call('ZADD', holdersOf(i), now + lease, token)
  lastWithHolders(i, value)
  return 1
end

-- A reader that is alone becomes the writer.
local function upgrade(last, token, lease)
  for i = first, last, 2 do
    local value, sharing, count = state(i)
    if not has(i, token, value, sharing) or (sharing and (sharing ~= 'read' or count > 1)) then return 0 end
  end
  for i = first, last, 2 do
    call('SET', KEYS[i], token, 'PX', math.max(lease, call('PTTL', KEYS[i])))
    call('DEL', holdersOf(i))
  end
  return granted(last, fenceFor(token))
end

-- The writer becomes a reader, and lets in the readers that come next.
local function downgrade(i, token)
  local value, sharing = state(i)
  if not has(i, token, value, sharing) then return 0 end
  if not sharing then
    give(i, token, call('PTTL', KEYS[i]), 'read')
    handOver(i, nil, true, 'read', 1)
  end
  return 1
end

-- Takes KEYS[i] from a holder: from one that shares it by its token, else from the token with this SHA1.
local function force(i, token)
  local value, sharing = state(i)
  if not sharing then
    if type(value) ~= 'string' or redis.sha1hex(value) ~= token then return 0 end
    token = value
  end
  tell(token, 'lost ' .. token)
  return free(i, token)
end
`;
