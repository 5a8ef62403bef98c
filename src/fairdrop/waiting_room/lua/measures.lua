-- measures: what the checkout did since the last step of the adaptive pace; changes nothing (W10).
--
-- KEYS: cfg ctr seen line called active
-- ARGV: now_ms (0 = the store's clock), msgpack [interval_ms]
-- REPLY: msgpack [status, step, elapsed_ms, rate_milli, requests, slow, failed, completed, completed_before,
--   inside, waiting]
--   completed_before is what the step before counted, brought to the same length of time
-- Status:
--   DUE       an interval has passed since the last step: decide, and call adapt with this step's number
--   NOT_DUE   it has not, or the pace is not adaptive
--   NO_SALE   the store does not hold this sale
-- Cost: O(1).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'rate_milli', 'adaptive')
if not cfg[1] then return cmsgpack.pack({ 'NO_SALE' }) end
local s = redis.call('HMGET', KEYS[3], 'step', 'since_ms', 'requests', 'slow', 'failed', 'done',
  'completed_milli')
local c = redis.call('HMGET', KEYS[2], 'done', 'adaptive_milli')
local elapsed = now - tonumber(s[2] or '0')
if cfg[2] ~= '1' or elapsed < cmsgpack.unpack(ARGV[2])[1] then return cmsgpack.pack({ 'NOT_DUE' }) end
local done = tonumber(c[1] or '0')
return cmsgpack.pack({ 'DUE', tonumber(s[1] or '0'), elapsed, tonumber(c[2] or cfg[1]),
  tonumber(s[3] or '0'), tonumber(s[4] or '0'), tonumber(s[5] or '0'), done - tonumber(s[6] or done),
  tonumber(s[7] or '0') * elapsed / 1000000,
  redis.call('ZCARD', KEYS[5]) + redis.call('ZCARD', KEYS[6]), redis.call('ZCARD', KEYS[4]) })
