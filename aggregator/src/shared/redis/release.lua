-- KEYS: meta. ARGV: fence.
if redis.call('HGET', KEYS[1], 'fence') == ARGV[1] then
  redis.call('HSET', KEYS[1], 'owner', '', 'fence', '', 'until', '0')
end
return 'ok'
