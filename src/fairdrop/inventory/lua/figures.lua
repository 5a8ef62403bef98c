-- figures: the live figures of a sale that everybody sees (H10, W6); changes nothing.
--
-- KEYS: cfg ctr line called active missed stk ret holds
-- ARGV: now_ms (0 = the store's clock), msgpack [variant, ...]
-- REPLY: msgpack [status, now_ms, mode, served, tail, waiting, called, active, missed, joined, left,
--   done, rate_milli, measured_milli, holds, version, [[quantity, free, held, sold, buffer], ...], admitted,
--   lobby,
--   [pace_milli, outflow_milli, outlook, line_cap, restoring_until, restored, restored_inside,
--   steps up, steps down, steps kept, reason of the last step, tail when the line was lost]]
--   outflow_milli is -1 before it was measured, line_cap is -1 without one
-- Status:
--   OK        the figures follow
--   NO_SALE   the store does not hold this sale
-- Cost: O(variants): counters and cardinalities only, nothing is scanned.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'mode', 'rate_milli', 'version', 'buffer_percent')
if not cfg[1] then return cmsgpack.pack({ 'NO_SALE' }) end
local c = redis.call('HMGET', KEYS[2], 'served', 'seq', 'joined', 'left', 'done', 'measured_milli',
  'admitted', 'lobby', 'pace_milli', 'outflow_milli', 'outlook', 'line_cap', 'restoring_until', 'restored',
  'restored_inside', 'steps_up', 'steps_down', 'steps_kept', 'step_reason',
  'lost_tail')
local stock = {}
for i, variant in ipairs(cmsgpack.unpack(ARGV[2])) do
  local f = redis.call('HMGET', KEYS[7], variant .. ':q', variant .. ':l', variant .. ':n',
    variant .. ':h', variant .. ':s')
  local free = tonumber(f[2] or '0') - tonumber(f[3] or '1') + 1
    + redis.call('LLEN', KEYS[8] .. ':' .. variant)
  local quantity = tonumber(f[1] or '0')
  local buffer = math.min(free, math.ceil(quantity * tonumber(cfg[4] or '0') / 100))
  stock[i] = { quantity, free - buffer, tonumber(f[4] or '0'), tonumber(f[5] or '0'), buffer }
end
return cmsgpack.pack({ 'OK', now, cfg[1], tonumber(c[1] or '0'), tonumber(c[2] or '0'),
  redis.call('ZCARD', KEYS[3]), redis.call('ZCARD', KEYS[4]), redis.call('ZCARD', KEYS[5]),
  redis.call('ZCARD', KEYS[6]), tonumber(c[3] or '0'), tonumber(c[4] or '0'),
  tonumber(c[5] or '0'), tonumber(cfg[2] or '0'), tonumber(c[6] or '0'),
  redis.call('HLEN', KEYS[9]), tonumber(cfg[3] or '0'), stock,
  tonumber(c[7] or '0'), tonumber(c[8] or '0'),
  { tonumber(c[9] or cfg[2] or '0'), tonumber(c[10] or '-1'), c[11] or '', tonumber(c[12] or '') or -1,
    tonumber(c[13] or '0'), tonumber(c[14] or '0'), tonumber(c[15] or '0'), tonumber(c[16] or '0'),
    tonumber(c[17] or '0'), tonumber(c[18] or '0'), c[19] or '', tonumber(c[20] or '0') } })
