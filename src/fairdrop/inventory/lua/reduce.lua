-- reduce: take free units out of sale, never one that is held or sold (H9).
--
-- KEYS: cfg stk ret
-- ARGV: now_ms (unused), msgpack [variant, units]
-- REPLY: msgpack [status, free, retired]
--   retired are the serials that will never be sold
-- Status:
--   REDUCED           so many units are gone from the quantity
--   TOO_FEW_FREE      fewer are free; nothing changed, free says how many could go
--   UNKNOWN_VARIANT   there is no such variant
--   NO_SALE           the store does not hold this sale
-- Cost: O(units).
-- Invariant: free + held + sold = quantity. Fresh serials go first, from the next one up, then
-- returned ones; the last serial stays, so that no serial is ever issued anew.
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local args = cmsgpack.unpack(ARGV[2])
local variant, units = args[1], args[2]
local f = redis.call('HMGET', KEYS[2], variant .. ':n', variant .. ':l')
if not f[1] then return cmsgpack.pack({ 'UNKNOWN_VARIANT', 0, {} }) end
local first, last = tonumber(f[1]), tonumber(f[2])
local list = KEYS[3] .. ':' .. variant
local free = last - first + 1 + redis.call('LLEN', list)
if units > free then return cmsgpack.pack({ 'TOO_FEW_FREE', free, {} }) end
local retired = {}
local fresh = math.min(units, last - first + 1)
for k = 0, fresh - 1 do retired[#retired + 1] = first + k end
if fresh > 0 then redis.call('HSET', KEYS[2], variant .. ':n', first + fresh) end
if units > fresh then
  for _, serial in ipairs(redis.call('LPOP', list, units - fresh)) do
    retired[#retired + 1] = tonumber(serial)
  end
end
redis.call('HINCRBY', KEYS[2], variant .. ':q', -units)
return cmsgpack.pack({ 'REDUCED', free - units, retired })
