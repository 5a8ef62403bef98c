-- extend: look at a hold in checkout later, because its order's deadline has moved (H4).
--
-- KEYS: cfg holds due
-- ARGV: now_ms (unused), msgpack [[hold id, deadline_ms], ...]
-- REPLY: msgpack [status, outcomes]
-- Status:
--   OK        the outcomes follow, one an item, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   EXTENDED   the hold now runs to the later of its old and its new deadline
--   NO_HOLD    there is no such hold in the checkout phase; nothing changed
-- Cost: O(units + log holds) an item.
-- Invariant: a deadline never moves to an earlier time.
-- Repeat: the same answer.
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local outcomes = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local hold = redis.call('HGET', KEYS[2], item[1])
  hold = hold and cmsgpack.unpack(hold)
  if hold and hold[4] == 1 then
    if item[2] > hold[3] then
      hold[3] = item[2]
      redis.call('HSET', KEYS[2], item[1], cmsgpack.pack(hold))
      redis.call('ZADD', KEYS[3], item[2], item[1])
    end
    outcomes[i] = 'EXTENDED'
  else
    outcomes[i] = 'NO_HOLD'
  end
end
return cmsgpack.pack({ 'OK', outcomes })
