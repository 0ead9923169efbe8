local guesses = false

-- @include include/source-of.lua

-- The channel of the token's process, if somebody listens there. PUBLISH counts those too who listen to everything, so NUMSUB
-- is asked.
local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  local channel = source and string.gsub(note, 'fence$', 'wake:') .. source
  return channel and redis.pcall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 and channel
end

-- Answers whether somebody heard it. A user that may not PUBLISH is heard by nobody.
local function say(channel, message)
  return (tonumber(redis.pcall('PUBLISH', channel, message)) or 0) > 0
end

-- @include include/tell.lua
