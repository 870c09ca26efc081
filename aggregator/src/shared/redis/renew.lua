-- KEYS: meta. ARGV: fence or nothing, lease in ms.
-- Answers whether the fence is the owner's, who the owner is, and where.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta = redis.call('HMGET', KEYS[1], 'fence', 'owner', 'url', 'until')
if ARGV[1] ~= '' and meta[1] == ARGV[1] then
  redis.call('HSET', KEYS[1], 'until', now + ARGV[2])
  return {'1', meta[2], meta[3]}
end
if (meta[2] or '') ~= '' and tonumber(meta[4]) > now then return {'0', meta[2], meta[3]} end
return {'0', '', ''}
