-- KEYS: meta, next. ARGV: fence, and a chunk; none: begin anew.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return {'fenced', '0'} end
if ARGV[2] then
  redis.call('RPUSH', KEYS[2], ARGV[2])
else
  redis.call('DEL', KEYS[2])
end
return {'ok', '0'}
