local guesses = true -- who has heard

-- @include include/source-of.lua

local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  return source and WAKE_CHANNELS .. source
end

-- Answers 'maybe', if there was no error.
local function say(channel, message)
  return type(redis.pcall('PUBLISH', channel, message)) == 'number' and 'maybe'
end

-- @include include/tell.lua
