-- KEYS[i]            a key; and in a cluster, after all of them, the holders of each in the same order, or none
-- ARGV[2i-1], [2i]   its token, its lease in ms
-- RETURNS            which i are not the token's any more, and of which that is not known; an error, if it is known of none
local call, gone, unknown, now = redis.call, {}, {}, nil

local function holdersOf(i)
  return KEYS[i + #ARGV / 2] or error(redis.error_reply('TRYAGAIN Who shares it may be elsewhere.'))
end

-- @include include/renew.lua
