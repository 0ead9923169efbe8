import { fencesFor, RUN_MARK } from '../../../store/lock-store.js';

/** Fences and the note of the last one. */
export const FENCES = `
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function bringUp()
  local micros = time[1] * 1000000 + time[2]
  if tonumber(call('GET', note) or 0) < micros then
    call('SET', note, string.format('%.0f', micros), 'PX', 86400000)
  end
end

-- Lifts the note to what is in place of a token.
local function raise(_, floor)
  if tonumber(call('GET', note) or 0) < tonumber(floor) then call('SET', note, floor, 'PX', 86400000) end
  return 0
end

-- Answers the last of so many new fences.
local function mint(count)
  local last = call('INCRBY', note, count)
  if last > count then return last end
  bringUp()
  return call('INCRBY', note, count)
end

local function fenceFor(token)
  local count = string.sub(token, -1) == '${RUN_MARK}' and ${fencesFor(RUN_MARK)} or 1
  return mint(count) - count + 1
end
`;
