-- reduce: take free units out of sale, never one that is held or sold (H9).
--
-- KEYS: cfg stk ret idem
-- ARGV: now_ms (0 = the store's clock), msgpack [variant, units, key]
--   key names the operation: its first answer is kept as long as those of reserve
-- REPLY: msgpack [status, free, retired]
--   retired are the serials that will never be sold
-- Status:
--   REDUCED           so many units are gone from the quantity
--   TOO_FEW_FREE      fewer are free; nothing changed, free says how many could go
--   UNKNOWN_VARIANT   there is no such variant
--   KEY_REUSED        the key was used for another variant or number of units
--   NO_SALE           the store does not hold this sale
-- Cost: O(units).
-- Invariant: free + held + sold = quantity. Fresh serials go first, from the next one up, then
-- returned ones; the last serial stays, so that no serial is ever issued anew.
-- Repeat: the same answer, and no further unit goes.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local args = cmsgpack.unpack(ARGV[2])
local variant, units, key = args[1], args[2], args[3]
local idem_ttl = tonumber(redis.call('HGET', KEYS[1], 'idem_ttl_s') or '900')
local period = math.floor(now / 1000 / idem_ttl)
local answers = KEYS[4] .. ':' .. period
local name, asked = '!stock:' .. key, variant .. ':' .. units
local before = redis.call('HGET', answers, name)
  or redis.call('HGET', KEYS[4] .. ':' .. (period - 1), name)
if before then
  before = cmsgpack.unpack(before)
  if before[1] ~= asked then return cmsgpack.pack({ 'KEY_REUSED', 0, {} }) end
  return cmsgpack.pack(before[2])
end
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
local answer = { 'REDUCED', free - units, retired }
redis.call('HSET', answers, name, cmsgpack.pack({ asked, answer }))
redis.call('EXPIRE', answers, 2 * idem_ttl)
return cmsgpack.pack(answer)
