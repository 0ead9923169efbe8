-- Renews many locks, each only while its token still holds the key. Never shortens a lease: if the replies of two
-- renewals cross or get lost, the longer one counts. A key that is no lock, or can't be renewed, stops none of the
-- others. For a shared key it extends the token's own lease, and the key as far as that needs.
--
-- KEYS[i]            a key
-- ARGV[2i-1], [2i]   its token, its lease in ms. After the token and a space: the number of the upgrade that made its
--                    holder the writer, if it has to be that
-- RETURNS            {every i whose token doesn't hold its key any more, every i of which that is not known};
--                    an error, if it is known of none
local call, gone, unknown, now = redis.call, {}, {}, nil

local function holdersOf(i)
  return (string.find(KEYS[i], '{[^}]+}') and KEYS[i] or '{' .. KEYS[i] .. '}') .. ':holders'
end

-- @include include/renew-all.lua
