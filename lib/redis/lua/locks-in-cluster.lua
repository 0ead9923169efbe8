--- @param WAKE_CHANNELS
-- KEYS[1]    the note of the last fence
-- KEYS[2]    in a cluster: a key that never exists
-- KEYS[..]   for each operation and each of its keys: the key, its queue ("…:queue"; beside it are "…:alive" and "…:holders")
-- ARGV[..]   for each operation: what (and of how many keys, and which kind with which label: "queue 2 read/report"), token, lease in ms
-- RETURNS    for each operation (without an array around it when there is only one)
--            try, ask, queue, run, deaf     fence (negative: others are queued), or {holder, ms its lease lasts, waiters ahead, fence so far},
--                                      or {"permits:n"} when it is shared by another number
--            reserve, upgrade          fence, or 0: not the token's any more, or not alone
--            all others                how many keys were the token's
local call, note, replies, first, a = redis.call, KEYS[1], {}, 3, 1

-- @include include/clock.lua

-- @include include/fast-path.lua

-- @include include/fences.lua

-- @include include/holders.lua

-- @include include/notify-in-cluster.lua

-- @include include/queue.lua

-- @include include/operations.lua

-- @include include/run.lua
