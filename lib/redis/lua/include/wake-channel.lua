-- The channels on which processes hear of their locks.
local deliveryIsUnknown = false

-- Returns the channel of the token's process, if it is subscribed. NUMSUB says so; the reply of PUBLISH also counts
-- clients that listen to a pattern of channels.
local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  local channel = source and string.sub(fenceCounter, 1, -6) .. 'wake:' .. source
  return channel and tryCall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 and channel
end

-- Returns whether anybody heard it. Nobody hears a user that may not PUBLISH.
local function publish(channel, message)
  return (tonumber(tryCall('PUBLISH', channel, message)) or 0) > 0
end
