-- tick: end what is over, then call the next people, at the pace and below the cap (W8, W9, W11).
--
-- KEYS: cfg ctr line called active missed place adm admhold lobby stk
-- ARGV: now_ms (0 = the store's clock), msgpack [limit]
-- REPLY: msgpack [status, called, missed, lapsed, mode, more, to_fill, sold_out]
--   counts of this run; more is true when the limit stopped it and another run is due at once;
--   to_fill counts the places of the draw that are not in the line yet, once the lobby is shut;
--   sold_out says that all which was on sale is sold, and nobody is called
-- Status:
--   OK        the run is done
--   NO_SALE   the store does not hold this sale
-- Cost: O(limit x log n + variants); the limit bounds each of the three steps, so the store never stops for
-- long however many deadlines pass at one moment.
-- Invariant: people move from the line to the called set inside this script, so no crash can lose
-- anybody in between; called + active never exceed the cap; in no span of time are more people called
-- than the bucket holds plus the rate times the span, however many servers run this. The serving
-- number never passes the tail, nor what has been filled of the draw: whoever the draw has put ahead is
-- in the line before anybody behind them can be called.
-- Repeat: at the same moment nothing changes, unless the limit stopped it: then it goes on.
-- The token bucket (a counter that fills at the rate and holds burst_ms of it, at least one person;
-- nothing at rate 0) is that of RFC 2697's single bucket, in thousandths of a person. So the first
-- second after a quiet moment brings one second's people and the burst, not two seconds' people. An
-- adaptive pace (W10) counts within the bounds that are set at this moment.
-- The line knows the stock (W16): once all that was on sale is sold, nobody is called until units come
-- back. What join and status tell of the stock is what was so at the last run. Nobody is called either
-- while a line that was lost is being restored (W15).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'mode', 'rate_milli', 'cap', 'claim_ttl_ms', 'opens_ms',
  'closes_ms', 'burst_ms', 'lobby_ms', 'window_ms', 'line_cap_milli', 'adaptive', 'rate_min_milli',
  'rate_max_milli', 'buffer_percent')
local mode = cfg[1]
if not mode then return cmsgpack.pack({ 'NO_SALE' }) end
local limit = cmsgpack.unpack(ARGV[2])[1]
local opens, closes = tonumber(cfg[5] or '0'), tonumber(cfg[6] or '0')
local ctr = redis.call('HMGET', KEYS[2], 'tokens_milli', 'refilled_ms', 'served', 'measured_milli',
  'measured_ms', 'measured_calls', 'seq', 'drawn', 'filled', 'adaptive_milli', 'restoring_until', 'flow_milli',
  'flow_ms', 'flow_calls', 'outflow_milli', 'admitted')
local drawn, filled = tonumber(ctr[8] or 'x'), tonumber(ctr[9] or '0')
local lobby_ms = tonumber(cfg[8] or '0')
local opening = lobby_ms > 0 and opens + tonumber(cfg[9] or '0') or opens
local mode_before = mode
if mode == 'scheduled' and lobby_ms > 0 and opens > 0 and now >= opens - lobby_ms then mode = 'lobby' end
if (mode == 'scheduled' or mode == 'lobby') and opens > 0 and now >= opening then mode = 'open' end
if not drawn and mode ~= 'scheduled' and mode ~= 'lobby' and mode ~= 'closed' then
  drawn = redis.call('LLEN', KEYS[10])
  redis.call('HSET', KEYS[2], 'drawn', drawn)
end
local to_fill = math.max(0, (drawn or 0) - filled)
-- Opened by the clock or by hand: whoever was in the lobby is drawn before anybody is called. A store
-- that lost its lobby has nobody to draw.
if mode == 'open' and to_fill > 0 and filled == 0 then mode = 'drawing' end
if mode == 'drawing' and to_fill == 0 then mode = 'open' end
if mode ~= 'closed' and closes > 0 and now >= closes then mode = 'closed' end
if mode ~= mode_before then redis.call('HSET', KEYS[1], 'mode', mode) end

local absent = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, limit)
if #absent > 0 then
  local positions = redis.call('HMGET', KEYS[7], unpack(absent))
  local entries = {}
  for i, visitor in ipairs(absent) do
    entries[2 * i - 1] = positions[i] or '0'
    entries[2 * i] = visitor
  end
  redis.call('ZADD', KEYS[6], unpack(entries))
  redis.call('ZREM', KEYS[4], unpack(absent))
  redis.call('HDEL', KEYS[7], unpack(absent))
end

local lapsed = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now, 'LIMIT', 0, limit)
if #lapsed > 0 then
  redis.call('ZREM', KEYS[5], unpack(lapsed))
  redis.call('HDEL', KEYS[7], unpack(lapsed))
  redis.call('HDEL', KEYS[8], unpack(lapsed))
  redis.call('HDEL', KEYS[9], unpack(lapsed))
  redis.call('HINCRBY', KEYS[2], 'left', #lapsed)
end

local rate = tonumber(cfg[2] or '0')
if cfg[11] == '1' then
  rate = math.max(tonumber(cfg[12]), math.min(tonumber(cfg[13]), tonumber(ctr[10] or rate)))
end
local tokens, refilled = tonumber(ctr[1] or '0'), tonumber(ctr[2] or '0')
local bucket = rate > 0 and math.max(rate * tonumber(cfg[7] or '1000') / 1000, 1000) or 0
if refilled == 0 then
  tokens = bucket
elseif now > refilled then
  tokens = tokens + rate * (now - refilled) / 1000
end
-- Also when no time has passed: a lower rate has a smaller bucket, and counts at once.
tokens = math.min(bucket, tokens)
refilled = math.max(refilled, now)

-- What can be sold: each variant's quantity without its safety buffer (H9).
local stock, variants = redis.call('HGETALL', KEYS[11]), {}
for i = 1, #stock, 2 do
  local variant = string.sub(stock[i], 1, -3)
  local units = variants[variant] or { q = 0, h = 0, s = 0 }
  variants[variant] = units
  units[string.sub(stock[i], -1)] = tonumber(stock[i + 1])
end
local buffer_percent = tonumber(cfg[14] or '0')
local quantity, free, held = 0, 0, 0
for _, units in pairs(variants) do
  local left = units.q - units.h - units.s
  local buffer = math.min(left, math.ceil(units.q * buffer_percent / 100))
  quantity = quantity + units.q - buffer
  free = free + left - buffer
  held = held + units.h
end
local sold_out = quantity > 0 and free + held <= 0
local restoring = tonumber(ctr[11] or '0') > now

local count = 0
local stopped = false
local inside = redis.call('ZCARD', KEYS[4]) + redis.call('ZCARD', KEYS[5])
local calling = (mode == 'open' or mode == 'draining') and not sold_out and not restoring
if calling then
  local room = math.max(0, tonumber(cfg[3] or '0') - inside)
  local allowed = math.min(math.floor(tokens / 1000), room)
  if to_fill > 0 then allowed = math.min(allowed, redis.call('ZCOUNT', KEYS[3], '-inf', filled)) end
  stopped = allowed > limit
  allowed = math.min(allowed, limit)
  if allowed > 0 then
    local next_up = redis.call('ZPOPMIN', KEYS[3], allowed)
    count = #next_up / 2
    if count > 0 then
      local claim_by = now + tonumber(cfg[4])
      local deadlines, positions = {}, {}
      local served = tonumber(ctr[3] or '0')
      for i = 1, #next_up, 2 do
        deadlines[i], deadlines[i + 1] = claim_by, next_up[i]
        positions[i], positions[i + 1] = next_up[i], next_up[i + 1]
        served = math.max(served, tonumber(next_up[i + 1]))
      end
      redis.call('ZADD', KEYS[4], unpack(deadlines))
      redis.call('HSET', KEYS[7], unpack(positions))
      redis.call('HSET', KEYS[2], 'served', served)
      tokens = tokens - 1000 * count
    end
    stopped = stopped and count == limit
  end
end

-- The measured outflow: calls over windows of at least a second, smoothed by halves.
local measured, since = tonumber(ctr[4] or '0'), tonumber(ctr[5] or '0')
local calls = tonumber(ctr[6] or '0') + count
if since == 0 then
  since = now
elseif now - since >= 1000 then
  local window = 1000000 * calls / (now - since)
  measured = measured == 0 and window or (measured + window) / 2
  since, calls = now, 0
end

-- The outflow that waits are told by: calls while people wait, over windows of thirty calls (1 to 30 s),
-- smoothed by a quarter; what is told follows only once it is a fifth off, so that nobody's wait rises
-- by chance alone. A change to a third or to three times as much is none by chance, and counts at once.
-- While nobody could be called, the last one stands; what a full bucket lets out first is not counted.
local flow, flow_since = tonumber(ctr[12] or 'x'), tonumber(ctr[13] or 'x')
local flow_calls, outflow = tonumber(ctr[14] or '0') + count, tonumber(ctr[15] or 'x')
if not calling or redis.call('ZCARD', KEYS[3]) == 0 then
  flow_since, flow_calls = nil, 0
elseif not flow_since then
  flow_since, flow_calls = now, 0
else
  local passed = now - flow_since
  local expected = (flow or 0) * passed / 1000000
  if (passed >= 1000 and (flow_calls >= 30 or (expected >= 10 and flow_calls * 3 < expected)))
    or passed >= 30000 then
    local window = 1000000 * flow_calls / passed
    if not flow or window > 3 * flow or window * 3 < flow then
      flow = window
    else
      flow = flow + 0.25 * (window - flow)
    end
    if not outflow or math.abs(flow - outflow) > 0.2 * outflow then outflow = math.floor(flow + 0.5) end
    redis.call('HSET', KEYS[2], 'flow_milli', string.format('%.3f', flow), 'outflow_milli', outflow)
    flow_since, flow_calls = now, 0
  end
end
local line_cap = ''
if quantity > 0 and tonumber(cfg[10] or '0') > 0 then
  line_cap = math.floor(tonumber(cfg[10]) * (free + held) / 1000)
end
local outlook = table.concat({ free, held, quantity,
  math.max(0, inside + count - redis.call('HLEN', KEYS[9])), ctr[16] or 0 }, ':')
redis.call('HSET', KEYS[2], 'tokens_milli', string.format('%.3f', tokens), 'refilled_ms', refilled,
  'measured_milli', math.floor(measured), 'measured_ms', since, 'measured_calls', calls,
  'flow_ms', flow_since or '', 'flow_calls', flow_calls, 'pace_milli', rate, 'line_cap', line_cap,
  'outlook', outlook)
return cmsgpack.pack({ 'OK', count, #absent, #lapsed, mode,
  stopped or #absent == limit or #lapsed == limit, to_fill, sold_out })
