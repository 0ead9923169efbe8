-- Runs the operations in order.
local onAllKeys = {reserve = reserve, upgrade = upgrade}
local onEachKey = {
  release = release, cancel = cancel, keep = keep, shorten = shorten, downgrade = downgrade, force = force,
}

-- A key that is no lock, and a lack of memory, concern only the operation that meets them. Any other error is one of
-- the whole call.
local callError
local function attempt(run, ...)
  local done, reply = pcall(run, ...)
  if done then return reply end
  local failure = {err = type(reply) == 'table' and reply.err or reply}
  if not string.find(failure.err, 'WRONGTYPE') and not string.find(failure.err, 'OOM') then callError = failure end
  return failure
end

while nextArg <= #ARGV do
  local what, token, lease, reply = ARGV[nextArg], ARGV[nextArg + 1], ARGV[nextArg + 2]
  local operation, keyCount, kind = string.match(what, '^(%a+) ?(%d*) ?(%S*)$')
  local lastKey = firstKey + 2 * ((tonumber(keyCount) or 1) - 1)
  if kind == '' then kind = 'exclusive' end
  if onAllKeys[operation] then
    reply = attempt(onAllKeys[operation], lastKey, token, lease, kind)
  elseif onEachKey[operation] then
    reply = 0
    for i = firstKey, lastKey, 2 do
      local ofKey = attempt(onEachKey[operation], i, token, lease, kind)
      if type(ofKey) == 'table' then reply = ofKey elseif type(reply) == 'number' then reply = reply + ofKey end
    end
  else
    reply = attempt(acquire, operation, lastKey, token, lease, kind)
  end
  if callError then return callError end
  replies[#replies + 1] = reply
  firstKey = lastKey + 2
  nextArg = nextArg + 3
end
advanceCounter()
return #replies == 1 and replies[1] or replies
