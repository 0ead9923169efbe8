-- Returns what names the token's process.
local function sourceOf(token)
  return string.match(token, '^(.*)%.') or ''
end

-- Sends a message to the token's process.
local function notify(token, message)
  local channel = channelOf(token)
  return channel and publish(channel, message)
end
