-- Acquires and releases locks: runs many operations in one call, in order. So all that a process wants in one tick
-- costs one command, and "release mine, then queue me again" is one step.
--
-- KEYS[1]    the fence counter
-- KEYS[..]   for each operation and each of its keys: the key, and its queue ("…:queue"; "…:alive" and "…:holders" are
--            beside it)
-- ARGV[..]   for each operation: the operation, the token, the lease in ms. The operation is a word ("queue"), or also
--            the number of its keys and the kind of its lock ("queue 2 read/report")
-- RETURNS    {how many operations, the fence before the first that they got}, if there are more than two and each was
--            granted, or released the one key that it held: a client takes long to read many numbers. The fences are
--            in the order of the operations.
--            Otherwise for each operation, or without an array around it if there is only one:
--            try, poll, queue, handoff, unsubscribed
--                               the fence (negative: others are queued);
--                               or {holder, ms left of its lease, waiters ahead, a fence below every later one};
--                               or {"permits:n"}, if the key is shared by another number of permits
--            reserve, upgrade   the fence; or 0, if the token doesn't hold every key, or not alone
--            all others         how many of the keys the token held
--
-- Operations:
--   try            acquire all keys or none
--   poll           try, for a caller that will ask again: also tells the holder that the lock is contended
--   queue          acquire the keys in order, and queue for the first that is busy
--   handoff        queue, with a token that ends in LOCAL_WAITERS_MARK: others wait behind it in its process
--   unsubscribed   queue, for a process that can't be notified
--   release        release the keys
--   keep           release them after the time in place of the lease
--   cancel         release the keys and leave their queues
--   shorten        let what the token holds end with the lease
--   reserve        renew a lock, and give it new fences
--   upgrade        make the only reader the writer. In place of the kind: the number of the upgrade, which its
--                  holder counts
--   downgrade      make the writer a reader. In place of the kind: the last upgrade that this ends (0: it came as the
--                  writer), so that late copies of upgrades do nothing
--   force          take the keys from a holder. In place of the kind: who does so, and why
--   clock, raise   advance the fence counter. Without keys, before all others
local KEYS, ARGV, call, tryCall = KEYS, ARGV, redis.call, redis.pcall -- a global takes longer to find
local fenceCounter, replies, firstKey, nextArg = KEYS[1], {}, 2, 1

-- @include include/advance-counter.lua

-- @include include/fast-path.lua

-- @include include/contended-path.lua

-- @include include/fences.lua

-- @include include/holders.lua

-- @include include/wake-channel.lua

-- @include include/notify.lua

-- @include include/arrival.lua

-- @include include/queue.lua

-- @include include/hand-off.lua

-- @include include/acquire.lua

-- @include include/upgrades.lua

-- @include include/operations.lua

-- @include include/run.lua
