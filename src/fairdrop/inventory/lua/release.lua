-- release: give back what a hold holds; idempotent, by what is held, never below zero (H5).
--
-- KEYS: cfg stk ret holds due buyer admhold verified
-- ARGV: now_ms (unused), msgpack [[hold id, buyer or nil, lost], ...]
--   with a buyer, only a hold of that buyer that has no order yet; without one, any hold: its
--   order's row has said that the units are free. lost lists [variant, serial, ...] that turned out
--   to belong to somebody else (H8): they stay out of the pool, as sold.
-- REPLY: msgpack [status, outcomes]; an outcome is [code, units]
-- Status:
--   OK        the outcomes follow, one an item, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   RELEASED        so many units are free again
--   NOTHING_HELD    there is no such hold of this buyer (any more); nothing changed
--   ORDER_STARTED   checkout has begun: cancel the order instead
-- Cost: O(units) and O(log holds) an item.
-- Invariant: free + held + sold = quantity.
-- Repeat: RELEASED becomes NOTHING_HELD; nothing changes.
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local outcomes = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local hold_id, buyer, lost = item[1], item[2], item[3] or {}
  local hold = redis.call('HGET', KEYS[4], hold_id)
  hold = hold and cmsgpack.unpack(hold)
  if not hold or (buyer and hold[1] ~= buyer) then
    outcomes[i] = { 'NOTHING_HELD', 0 }
  elseif buyer and hold[4] == 1 then
    outcomes[i] = { 'ORDER_STARTED', 0 }
  else
    local not_ours = {}
    for k = 1, #lost, 2 do not_ours[lost[k] .. ':' .. lost[k + 1]] = true end
    local units, free = 0, 0
    for _, line in ipairs(hold[5]) do
      local variant, serials, back, sold = line[1], line[2], {}, 0
      for _, serial in ipairs(serials) do
        if not_ours[variant .. ':' .. serial] then sold = sold + 1 else back[#back + 1] = serial end
      end
      units = units + #serials
      free = free + #back
      if #back > 0 then redis.call('RPUSH', KEYS[3] .. ':' .. variant, unpack(back)) end
      redis.call('HINCRBY', KEYS[2], variant .. ':h', -#serials)
      if sold > 0 then redis.call('HINCRBY', KEYS[2], variant .. ':s', sold) end
    end
    redis.call('HDEL', KEYS[4], hold_id)
    redis.call('ZREM', KEYS[5], hold_id)
    if redis.call('HINCRBY', KEYS[6], hold[1], -units) <= 0 then
      redis.call('HDEL', KEYS[6], hold[1])
    end
    if redis.call('HGET', KEYS[7], hold[1]) == hold_id then
      redis.call('HDEL', KEYS[7], hold[1])
    end
    for _, mark in ipairs(hold[6] or {}) do
      if redis.call('HGET', KEYS[8], mark) == hold_id then redis.call('HDEL', KEYS[8], mark) end
    end
    outcomes[i] = { 'RELEASED', free }
  end
end
return cmsgpack.pack({ 'OK', outcomes })
