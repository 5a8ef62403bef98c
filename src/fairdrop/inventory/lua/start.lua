-- start: hand a hold over to its order; from here the order's row decides (H7, O1).
--
-- KEYS: cfg holds
-- ARGV: now_ms (0 = the store's clock), msgpack [[hold id, buyer], ...]
-- REPLY: msgpack [status, outcomes]; an outcome is [code, deadline_ms, admission, lines]
-- Status:
--   OK        the outcomes follow, one an item, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   STARTED    the hold is in the checkout phase: only its order's end gives the units back
--   NO_HOLD    there is no such hold of this buyer
--   EXPIRED    the deadline has passed, although no sweep has run yet (H4)
-- Cost: O(units) an item.
-- Invariant: the phase only goes from 0 (the store decides) to 1 (the order's row decides).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local outcomes = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local hold_id, buyer = item[1], item[2]
  local hold = redis.call('HGET', KEYS[2], hold_id)
  hold = hold and cmsgpack.unpack(hold)
  if not hold or hold[1] ~= buyer then
    outcomes[i] = { 'NO_HOLD' }
  elseif hold[4] == 0 and hold[3] <= now then
    outcomes[i] = { 'EXPIRED' }
  else
    if hold[4] == 0 then
      hold[4] = 1
      redis.call('HSET', KEYS[2], hold_id, cmsgpack.pack(hold))
    end
    outcomes[i] = { 'STARTED', hold[3], hold[2], hold[5] }
  end
end
return cmsgpack.pack({ 'OK', outcomes })
