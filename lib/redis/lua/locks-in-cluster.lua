-- Acquires and releases locks of one slot of a cluster: see locks.lua. Only how processes are notified differs, and
-- KEYS[2].
--
-- @param WAKE_CHANNELS   what the names of all wake channels begin with
-- KEYS[1]    the fence counter of the slot
-- KEYS[2]    a key of the slot that never exists: see ClusterNames.absentIn
-- KEYS[..], ARGV[..], RETURNS   as in locks.lua
local KEYS, ARGV, call, tryCall = KEYS, ARGV, redis.call, redis.pcall -- a global takes longer to find
local fenceCounter, replies, firstKey, nextArg = KEYS[1], {}, 3, 1

-- @include include/advance-counter.lua

-- @include include/fast-path.lua

-- @include include/fences.lua

-- @include include/holders.lua

-- @include include/wake-channel-in-cluster.lua

-- @include include/notify.lua

-- @include include/arrival.lua

-- @include include/queue.lua

-- @include include/hand-off.lua

-- @include include/acquire.lua

-- @include include/upgrades.lua

-- @include include/operations.lua

-- @include include/run.lua
