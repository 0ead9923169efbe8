local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Brings the note up after all. Out of memory, Redis refuses that until something has been written, such as the DEL of a release.
local function bringUp()
  if not behind then return end
  call('SET', note, behind, 'PX', noteLasts)
  behind = nil
end

-- Answers the first of so many new fences.
local function mint(count)
  bringUp()
  local last = call('INCRBY', note, count)
  if last <= count then
    call('SET', note, string.format('%.0f', time[1] * 1000000 + time[2]), 'PX', 86400000)
    last = call('INCRBY', note, count)
  end
  return last - count + 1
end

local function fenceFor(token)
  return mint(string.sub(token, -1) == RUN_MARK and FENCES_OF_A_RUN or FENCES)
end
