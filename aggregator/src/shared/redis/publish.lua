-- KEYS: meta, log, next, snapshot. ARGV: fence, name, entries of the log since the group
-- began that it replaces.
local meta = redis.call('HMGET', KEYS[1], 'fence', 'snapshot', 'dropped')
if meta[1] ~= ARGV[1] then return {'fenced', '0'} end
if meta[2] == ARGV[1] .. '/' .. ARGV[2] then return {'ok', '0'} end
redis.call('RENAME', KEYS[3], KEYS[4])
local drop = ARGV[3] - (meta[3] or '0')
if drop > 0 then redis.call('LTRIM', KEYS[2], drop, -1) end
redis.call('HSET', KEYS[1], 'snapshot', ARGV[1] .. '/' .. ARGV[2], 'dropped', ARGV[3])
return {'ok', '0'}
