-- Sends a message to a process on its wake channel.
--
-- ARGV[1], ARGV[2]   a channel, a message
-- RETURNS            how many clients heard it
return redis.call('PUBLISH', ARGV[1], ARGV[2])
