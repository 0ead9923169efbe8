-- Names the holders of a key, so that exactly these can be released by force.
--
-- KEYS[1], KEYS[2]   the key, its queue
-- RETURNS            the tokens of all who share it; or the SHA1 of its value, which another tool may have written
local value = redis.call('GET', KEYS[1])
if not value then return {} end
if string.sub(value, 1, SHARED_LENGTH) ~= SHARED then return {redis.sha1hex(value)} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', string.sub(KEYS[2], 1, -6) .. 'holders', '(' .. now, '+inf')
