-- grace: start, move or end the time in which a lost line is restored and nobody is called (W15).
--
-- KEYS: cfg ctr
-- ARGV: now_ms (0 = the store's clock), msgpack [milliseconds from now; 0 ends it]
-- REPLY: msgpack [status, restoring_until]
-- Status:
--   OK        the line stands still until then
--   NO_SALE   the store does not hold this sale
-- Cost: O(1).
-- Invariant: nothing but the time changes.
-- Repeat: the same answer, counted from the later moment.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local grace = cmsgpack.unpack(ARGV[2])[1]
local until_ms = grace > 0 and now + grace or 0
redis.call('HSET', KEYS[2], 'restoring_until', until_ms)
return cmsgpack.pack({ 'OK', until_ms })
