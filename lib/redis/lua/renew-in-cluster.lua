-- Renews many locks of one slot of a cluster: see renew.lua. Looks for the holders of a shared key only if their name
-- is given too: while the slot moves between nodes, Redis itself then makes sure that they have not been left behind.
--
-- KEYS[i]            a key; after all keys the holders of each in the same order, or none of them
-- ARGV[2i-1], [2i]   its token, its lease in ms: see renew.lua
-- RETURNS            {every i whose token doesn't hold its key any more, every i of which that is not known};
--                    an error, if it is known of none
local call, gone, unknown, now = redis.call, {}, {}, nil

local function holdersOf(i)
  return KEYS[i + #ARGV / 2] or error(redis.error_reply('TRYAGAIN Who shares it may be elsewhere.'))
end

-- @include include/renew-all.lua
