-- observe: add up what a web worker saw of the checkout, for the adaptive pace (W10).
--
-- KEYS: cfg seen
-- ARGV: now_ms (unused), msgpack [requests, slow, failed]
-- REPLY: msgpack [status]
-- Status:
--   OK        counted
--   NO_SALE   the store does not hold this sale
-- Cost: O(1); a web worker calls it once a second, however many requests it served.
-- Invariant: what is counted here is taken away by exactly one step of the pace.
-- Repeat: counts once more; one step of the pace sees a second of one worker twice.
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local counts = cmsgpack.unpack(ARGV[2])
for i, name in ipairs({ 'requests', 'slow', 'failed' }) do
  redis.call('HINCRBY', KEYS[2], name, counts[i])
end
return cmsgpack.pack({ 'OK' })
