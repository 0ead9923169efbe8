local function tell(token, message)
  local channel = channelOf(token)
  return channel and say(channel, message)
end
