-- give_back: units that were sold are free again, since their money goes back (O9).
--
-- KEYS: cfg stk ret buyer backs
-- ARGV: now_ms (unused), msgpack [refund id, buyer, lines]; a line is [variant, serials]
-- REPLY: msgpack [status, units]
-- Status:
--   RETURNED          so many units are free
--   RETURNED_BEFORE   this refund's units came back earlier; nothing changed
--   NO_SALE           the store does not hold this sale
-- Cost: O(units).
-- Invariant: free + held + sold = quantity; the units of one refund come back once.
-- Repeat: RETURNED becomes RETURNED_BEFORE; nothing changes.
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local args = cmsgpack.unpack(ARGV[2])
local refund, buyer, lines = args[1], args[2], args[3]
if redis.call('SADD', KEYS[5], refund) == 0 then
  return cmsgpack.pack({ 'RETURNED_BEFORE', 0 })
end
local units = 0
for _, line in ipairs(lines) do
  local variant, serials = line[1], line[2]
  for from = 1, #serials, 1000 do  -- Lua passes a few thousand arguments at most
    redis.call('RPUSH', KEYS[3] .. ':' .. variant, unpack(serials, from, math.min(from + 999, #serials)))
  end
  redis.call('HINCRBY', KEYS[2], variant .. ':s', -#serials)
  units = units + #serials
end
if redis.call('HINCRBY', KEYS[4], buyer, -units) <= 0 then redis.call('HDEL', KEYS[4], buyer) end
return cmsgpack.pack({ 'RETURNED', units })
