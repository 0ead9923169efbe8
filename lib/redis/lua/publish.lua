-- ARGV[1], [2]   a channel, a message
-- RETURNS        how many heard it
return redis.call('PUBLISH', ARGV[1], ARGV[2])
