-- The channels on which processes hear of their locks. A message reaches the subscribers of all nodes, but a node knows
-- of its own subscribers only: anybody may have heard it.
local deliveryIsUnknown = true

local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  return source and WAKE_CHANNELS .. source
end

-- Returns 'maybe', unless it fails.
local function publish(channel, message)
  return type(tryCall('PUBLISH', channel, message)) == 'number' and 'maybe'
end
