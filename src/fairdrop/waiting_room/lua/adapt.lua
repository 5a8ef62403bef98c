-- adapt: take one step of the adaptive pace; of several that were decided at once, the first counts (W10).
--
-- KEYS: cfg ctr seen
-- ARGV: now_ms (0 = the store's clock), msgpack [step, interval_ms, rate_milli, reason, requests, slow, failed]
--   step and the three counts are what measures said; reason is up, down or kept, and after a colon why
-- REPLY: msgpack [status, rate_milli]
-- Status:
--   ADAPTED    the pace is this from now on, within the bounds that are set
--   TOO_LATE   another worker has taken this step, or the pace is not adaptive any more; nothing changed
--   NO_SALE    the store does not hold this sale
-- Cost: O(1).
-- Invariant: one step an interval, however many workers decide. What was counted since measures were
-- read is kept for the next step.
-- Repeat: ADAPTED becomes TOO_LATE; nothing changes.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'adaptive', 'rate_min_milli', 'rate_max_milli')
if not cfg[1] then return cmsgpack.pack({ 'NO_SALE' }) end
local step, interval, rate, reason, requests, slow, failed = unpack(cmsgpack.unpack(ARGV[2]))
local s = redis.call('HMGET', KEYS[3], 'step', 'since_ms', 'done')
local elapsed = now - tonumber(s[2] or '0')
if cfg[1] ~= '1' or tonumber(s[1] or '0') ~= step or elapsed < interval then
  return cmsgpack.pack({ 'TOO_LATE', 0 })
end
rate = math.max(tonumber(cfg[2]), math.min(tonumber(cfg[3]), rate))
local done = tonumber(redis.call('HGET', KEYS[2], 'done') or '0')
local completed_milli = s[3] and math.floor(1000000 * (done - tonumber(s[3])) / elapsed) or 0
redis.call('HINCRBY', KEYS[3], 'requests', -requests)
redis.call('HINCRBY', KEYS[3], 'slow', -slow)
redis.call('HINCRBY', KEYS[3], 'failed', -failed)
redis.call('HSET', KEYS[3], 'step', step + 1, 'since_ms', now, 'done', done, 'completed_milli',
  completed_milli)
redis.call('HSET', KEYS[2], 'adaptive_milli', rate, 'step_reason', reason)
redis.call('HINCRBY', KEYS[2], 'steps_' .. string.match(reason, '^%a+'), 1)
return cmsgpack.pack({ 'ADAPTED', rate })
