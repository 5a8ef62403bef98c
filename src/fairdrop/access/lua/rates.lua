-- rates: what each server has counted, added up, so that a limit is one limit for all of them (W18).
--
-- KEYS: rates
-- ARGV: now_ms (0 = the store's clock), msgpack [[key, count], ...]; counts since the last time
-- REPLY: msgpack [status, period, totals]; the totals of this period, one a key, in order
-- Status:
--   OK        the totals follow
-- Cost: O(1) a key. What is counted is gone two periods later.
-- Invariant: within a period a total is the sum of all counts sent for its key.
-- Repeat: counts once more; a limit is then reached too early, never too late.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local period = math.floor(now / 60000)
local counted = KEYS[1] .. ':' .. period
local totals = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  totals[i] = redis.call('HINCRBY', counted, item[1], item[2])
end
redis.call('EXPIRE', counted, 120)
return cmsgpack.pack({ 'OK', period, totals })
