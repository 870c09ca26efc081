-- KEYS: meta. ARGV: id, url, lease in ms, nonce.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta = redis.call('HMGET', KEYS[1], 'owner', 'until')
local owner = meta[1] or ''
if owner ~= '' and owner ~= ARGV[1] and tonumber(meta[2]) > now then return {} end
local fence = redis.call('HINCRBY', KEYS[1], 'claims', 1) .. '-' .. ARGV[4]
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'url', ARGV[2], 'fence', fence, 'until', now + ARGV[3])
local held = redis.call('HMGET', KEYS[1], 'last', 'dropped')
return {fence, held[1] or '0', held[2] or '0'}
