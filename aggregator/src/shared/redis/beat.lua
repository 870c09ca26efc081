-- KEYS: ends, urls. ARGV: id, url, lease in ms.
-- Answers with the id and the url of every member whose lease has not ended.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do
  redis.call('HDEL', KEYS[2], id)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local members = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  members[#members + 1] = id
  members[#members + 1] = redis.call('HGET', KEYS[2], id) or ''
end
return members
