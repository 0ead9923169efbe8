local onEach = { release = free, cancel = giveUp, keep = keep, downgrade = downgrade, force = force, shorten = shorten }
local onAll = { reserve = reserve, upgrade = upgrade }

-- What is met in a key that is no lock, or for want of memory, concerns only those who ask for that key; any other error all of the call.
local wrong
local function attempt(does, ...)
  local done, reply = pcall(does, ...)
  if done then return reply end
  local said = {err = type(reply) == 'table' and reply.err or reply}
  if not string.find(said.err, 'WRONGTYPE') and not string.find(said.err, 'OOM') then wrong = said end
  return said
end

while a <= #ARGV do
  local what, token, lease, reply = ARGV[a], ARGV[a + 1], ARGV[a + 2], nil
  local verb, count, kind = string.match(what, '^(%a+) ?(%d*) ?(%S*)$')
  local last = first + 2 * ((tonumber(count) or 1) - 1)
  if kind == '' then kind = 'exclusive' end
  if onAll[verb] then
    reply = attempt(onAll[verb], last, token, lease, kind)
  elseif onEach[verb] then
    reply = 0
    for i = first, last, 2 do
      local one = attempt(onEach[verb], i, token, lease, kind)
      if type(one) == 'table' then reply = one elseif type(reply) == 'number' then reply = reply + one end
    end
  else
    reply = attempt(take, verb, last, token, lease, kind)
  end
  if wrong then return wrong end
  replies[#replies + 1] = reply
  first = last + 2
  a = a + 3
end
bringUp()
return #replies == 1 and replies[1] or replies
