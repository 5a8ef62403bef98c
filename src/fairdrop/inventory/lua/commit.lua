-- commit: the order is confirmed; what its hold held is sold (O3).
--
-- KEYS: cfg stk holds due admhold
-- ARGV: now_ms (unused), msgpack [hold id, ...]
-- REPLY: msgpack [status, outcomes]
-- Status:
--   OK        the outcomes follow, one a hold, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   COMMITTED      the units count as sold; they still count to the buyer's limit
--   NOTHING_HELD   there is no such hold (any more); nothing changed
-- Cost: O(lines) and O(log holds) a hold.
-- Invariant: free + held + sold = quantity.
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local outcomes = {}
for i, hold_id in ipairs(cmsgpack.unpack(ARGV[2])) do
  local hold = redis.call('HGET', KEYS[3], hold_id)
  if hold then
    hold = cmsgpack.unpack(hold)
    for _, line in ipairs(hold[5]) do
      redis.call('HINCRBY', KEYS[2], line[1] .. ':h', -#line[2])
      redis.call('HINCRBY', KEYS[2], line[1] .. ':s', #line[2])
    end
    redis.call('HDEL', KEYS[3], hold_id)
    redis.call('ZREM', KEYS[4], hold_id)
    if redis.call('HGET', KEYS[5], hold[1]) == hold_id then
      -- The admission is used up: until the waiting room ends it, it reserves nothing more (W13).
      redis.call('HSET', KEYS[5], hold[1], '')
    end
    outcomes[i] = 'COMMITTED'
  else
    outcomes[i] = 'NOTHING_HELD'
  end
end
return cmsgpack.pack({ 'OK', outcomes })
