-- KEYS: meta, log. ARGV: fence, the record it follows, its last record, entry.
local meta = redis.call('HMGET', KEYS[1], 'fence', 'last')
local last = meta[2] or '0'
if meta[1] ~= ARGV[1] then return {'fenced', last} end
if last == ARGV[3] then
  -- Sent again. Something is written all the same, for WAIT to wait for.
  redis.call('HSET', KEYS[1], 'last', last)
  return {'ok', last}
end
if last ~= ARGV[2] then return {'gap', last} end
redis.call('RPUSH', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'last', ARGV[3])
return {'ok', ARGV[3]}
