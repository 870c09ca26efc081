-- KEYS: meta, next. ARGV: fence, and a chunk with its place; none: begin anew.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return {'fenced', '0'} end
if not ARGV[2] then
  redis.call('DEL', KEYS[2])
elseif redis.call('LLEN', KEYS[2]) == tonumber(ARGV[3]) then
  redis.call('RPUSH', KEYS[2], ARGV[2])
end
return {'ok', '0'}
