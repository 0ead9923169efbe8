import { ALIVE_MS, fencesFor, RUN_MARK, type Granted, type Held } from '../../store/lock-store.js';
import { LuaScript } from '../lua-script.js';

/** How long a waiter that can't be told is given the key, in ms: it asks again before that. */
const DEAF_LEASE_MS = 2_000;

/** What the script answers for one operation: see RETURNS. */
export type LocksReply = number | Held | Error;

/**
 * All that takes and gives locks: many operations in one call, one after the other. So what a process wants in one tick costs
 * one command, and "give mine back, then queue me again" is one step.
 *
 * - `try` takes all keys or none. `queue` takes them in their order and queues for the first that is held; `run` is the same
 *   for a token that ends in `+`, `deaf` for a process that can't hear of its turn. `release` gives them back; `cancel` leaves
 *   the queues too. `reserve` renews a lock and gives it new fences. `force` takes a key from the token with this SHA1.
 *   `clock`, of no key, brings the note of the last fence up to the server's time.
 * - Whoever gives a key back hands it to the first live waiter in the same step, and tells that waiter's process on its one
 *   channel. If nobody listens there, the process is gone, or has just lost its subscription: the next waiter is taken, and
 *   this one keeps its place for as long as it counts as alive. Only one that said it is `deaf` is given the key all the same,
 *   for a moment: it finds it when it asks again.
 * - A free key with a queue, left by a holder that crashed, is its first waiter's, whoever asks.
 * - Fences count up from the server's time in µs. The note of the last one is brought up to that time when it is missing, and
 *   when the caller says so, which is after each reconnect and every second: so they grow across FLUSHALL and failover; and,
 *   as the note expires by the very clock it was set by, also when that clock is set back.
 */
export const LOCKS = new LuaScript<LocksReply>({
  source: `
-- KEYS[1]    the note of the last fence
-- KEYS[..]   for each operation and each of its keys: the key, its queue, its alive
-- ARGV[..]   for each operation: what (and of how many keys: "queue 2"), token, lease in ms
-- RETURNS    for each operation (without an array around it when there is only one)
--            try, queue, run, deaf   fence (negative: others are queued), or {holder, ms its lease lasts, waiters ahead, fence so far}
--            reserve                 fence, or 0: not the token's any more
--            release, cancel, force  how many keys were the token's
local call, note, replies, first, a = redis.call, KEYS[1], {}, 2, 1

-- One key each, and nobody in the queue: most calls need no more than this, and making functions takes time.
while a <= #ARGV do
  local what, key, token, reply = ARGV[a], KEYS[first], ARGV[a + 1], nil
  if what == 'release' then
    if call('EXISTS', KEYS[first + 1]) == 0 then
      reply = redis.pcall('GET', key) == token and call('DEL', key) or 0
    end
  elseif (what == 'queue' or what == 'run' or what == 'try') and call('EXISTS', key, KEYS[first + 1]) == 0 then
    call('SET', key, token, 'PX', ARGV[a + 2])
    local count = what == 'run' and ${fencesFor(RUN_MARK)} or 1
    reply = call('INCRBY', note, count) - count + 1
    if reply == 1 then -- the note was missing
      call('DEL', note)
      reply = nil
    end
  end
  if not reply then break end
  if #ARGV == 3 then return reply end
  replies[#replies + 1] = reply
  first = first + 3
  a = a + 3
end
if a > #ARGV then return replies end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function bringUp()
  local micros = time[1] * 1000000 + time[2]
  if tonumber(call('GET', note) or 0) < micros then
    call('SET', note, string.format('%.0f', micros), 'PX', 86400000)
  end
end

-- Answers the last of so many new fences.
local function mint(count)
  local last = call('INCRBY', note, count)
  if last > count then return last end
  bringUp()
  return call('INCRBY', note, count)
end

local function fenceFor(token)
  local count = string.sub(token, -1) == '${RUN_MARK}' and ${fencesFor(RUN_MARK)} or 1
  return mint(count) - count + 1
end

-- Answers whether the process of the token heard it. PUBLISH counts those too who listen to everything, so NUMSUB is asked
-- first. A user that may not PUBLISH is heard by nobody.
local function tell(token, message)
  local source = string.match(token, '^(.*)%.')
  if not source then return false end
  local channel = string.gsub(note, 'fence$', 'wake:') .. source
  if redis.pcall('PUBSUB', 'NUMSUB', channel)[2] == 0 then return false end
  return (tonumber(redis.pcall('PUBLISH', channel, message)) or 0) > 0
end

local function leave(i, token, lease)
  call('ZREM', KEYS[i + 1], token .. ' ' .. lease)
  call('ZREM', KEYS[i + 2], token)
end

-- Gives the free KEYS[i] to its first live waiter and answers its token; nothing if nobody waits, or the asker is first.
local function handOver(i, asker)
  local key, queue, alive, at = KEYS[i], KEYS[i + 1], KEYS[i + 2], 0
  while true do
    local waiter = call('ZRANGE', queue, at, at)[1]
    if not waiter then return nil end
    local token, lease = string.match(waiter, '^(.*) (%d+)$')
    if token == asker then return nil end
    local aliveUntil = tonumber(call('ZSCORE', alive, token) or 0)
    if aliveUntil < now then
      leave(i, token, lease)
    else
      local others = call('ZCARD', queue) > 1 and 1 or 0
      local heard = tell(token, string.format('granted %s %.0f %d %s %s', token, fenceFor(token), others, lease, key))
      if heard or aliveUntil % 1 ~= 0 then
        leave(i, token, lease)
        call('SET', key, token, 'PX', heard and lease or math.min(lease, ${DEAF_LEASE_MS}))
        return token
      end
      at = at + 1
    end
  end
end

local function free(i, token)
  if redis.pcall('GET', KEYS[i]) ~= token then return 0 end
  if not handOver(i) then call('DEL', KEYS[i]) end
  return 1
end

-- Who has KEYS[i], or is given it now because it is free and he is first; nothing if that is the token itself.
local function other(i, token)
  local holder = redis.pcall('GET', KEYS[i])
  if not holder and call('EXISTS', KEYS[i + 1]) == 1 then holder = handOver(i, token) end
  return holder ~= token and holder or nil
end

-- Answers how many are before it, and a fence that every later grant is above.
local function join(i, token, lease, holder, deaf)
  local queue, alive, waiter, asked = KEYS[i + 1], KEYS[i + 2], token .. ' ' .. lease, mint(1)
  local joined = call('ZADD', queue, 'NX', asked, waiter)
  call('ZADD', alive, now + ${ALIVE_MS} + (deaf and 0.5 or 0), token)
  call('PEXPIRE', queue, ${2 * ALIVE_MS})
  call('PEXPIRE', alive, ${2 * ALIVE_MS})
  if joined == 1 and string.sub(holder, -1) == '${RUN_MARK}' and call('ZCARD', queue) == 1 then
    tell(holder, 'wanted ' .. holder)
  end
  return call('ZRANK', queue, waiter), asked
end

local function granted(last, token)
  local fence = fenceFor(token)
  for i = first, last, 3 do
    if call('EXISTS', KEYS[i + 1]) == 1 then return -fence end
  end
  return fence
end

local function take(last, token, lease, verb)
  for i = first, last, 3 do
    local holder = verb == 'try' and other(i, token)
    if type(holder) == 'table' then return holder end
    if holder then return {holder, call('PTTL', KEYS[i]), call('ZCARD', KEYS[i + 1]), 0} end
  end
  for i = first, last, 3 do
    local holder = verb ~= 'try' and other(i, token)
    if type(holder) == 'table' then return holder end
    if holder then
      -- Whatever it has of later keys, it would hold them out of order: that is how callers deadlock.
      for later = i + 3, last, 3 do
        leave(later, token, lease)
        free(later, token)
      end
      local ahead, asked = join(i, token, lease, holder, verb == 'deaf')
      return {holder, call('PTTL', KEYS[i]), ahead, asked}
    end
    call('SET', KEYS[i], token, 'PX', lease)
    leave(i, token, lease)
  end
  return granted(last, token)
end

local function reserve(last, token, lease)
  for i = first, last, 3 do
    if redis.pcall('GET', KEYS[i]) ~= token then return 0 end
  end
  for i = first, last, 3 do
    if call('PTTL', KEYS[i]) < tonumber(lease) then call('PEXPIRE', KEYS[i], lease) end
  end
  return granted(last, token)
end

while a <= #ARGV do
  local what, token, lease, last, reply = ARGV[a], ARGV[a + 1], ARGV[a + 2], first - 3, nil
  if what == 'clock' then
    bringUp()
  else
    local verb, count = string.match(what, '^(%a+) ?(%d*)$')
    last = first + 3 * ((tonumber(count) or 1) - 1)
    if verb == 'reserve' then
      reply = reserve(last, token, lease)
    elseif verb == 'force' then
      local holder = redis.pcall('GET', KEYS[first])
      reply = type(holder) == 'string' and redis.sha1hex(holder) == token and free(first, holder) or 0
    elseif verb == 'release' or verb == 'cancel' then
      reply = 0
      for i = first, last, 3 do
        if verb == 'cancel' then leave(i, token, lease) end
        reply = reply + free(i, token)
      end
    else
      reply = take(last, token, lease, verb)
    end
  end
  replies[#replies + 1] = reply
  first = last + 3
  a = a + 3
end
return #replies == 1 and replies[1] or replies
`,
  decode(reply) {
    if (reply instanceof Error) return reply;
    if (!Array.isArray(reply)) return wholeNumber(reply);
    const [holder, leaseLeftMs, ahead, fence] = reply as unknown[];
    if (wholeNumber(fence) instanceof Error) return nonsense(reply);
    return { granted: false, holder: String(holder), leaseLeftMs: Number(leaseLeftMs) === -1 ? Infinity : Number(leaseLeftMs), ahead: Number(ahead), fence: Number(fence) };
  },
});

/** Reads the fence of a grant. */
export function grantOf(fence: number): Granted {
  return { granted: true, fence: Math.abs(fence), contended: fence < 0 };
}

/** Some settings of a client give numbers as text; anything else, such as the "QUEUED" of a transaction, must not pass for a grant. */
function wholeNumber(reply: unknown): number | Error {
  const number = Number(reply ?? NaN);
  return Number.isSafeInteger(number) ? number : nonsense(reply);
}

function nonsense(reply: unknown): Error {
  return new Error(`it answered what makes no sense: ${String(reply)}`);
}
