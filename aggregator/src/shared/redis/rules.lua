-- KEYS: rules. ARGV: revision, bytes.
local known = redis.call('HGET', KEYS[1], 'revision') or '0'
if tonumber(ARGV[1]) > tonumber(known) then
  redis.call('HSET', KEYS[1], 'revision', ARGV[1], 'bytes', ARGV[2])
end
return 'ok'
