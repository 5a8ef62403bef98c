-- tick: end what is over, then call the next people, at the pace and below the cap (W8, W9, W11).
--
-- KEYS: cfg ctr line called active missed place adm admhold lobby
-- ARGV: now_ms (0 = the store's clock), msgpack [limit]
-- REPLY: msgpack [status, called, missed, lapsed, mode, more, to_fill]
--   counts of this run; more is true when the limit stopped it and another run is due at once;
--   to_fill counts the places of the draw that are not in the line yet, once the lobby is shut
-- Status:
--   OK        the run is done
--   NO_SALE   the store does not hold this sale
-- Cost: O(limit x log n); the limit bounds each of the three steps, so the store never stops for
-- long however many deadlines pass at one moment.
-- Invariant: people move from the line to the called set inside this script, so no crash can lose
-- anybody in between; called + active never exceed the cap; in no span of time are more people called
-- than the bucket holds plus the rate times the span, however many servers run this. The serving
-- number never passes the tail, nor what has been filled of the draw: whoever the draw has put ahead is
-- in the line before anybody behind them can be called.
-- The token bucket (a counter that fills at the rate and holds burst_ms of it, at least one person;
-- nothing at rate 0) is that of RFC 2697's single bucket, in thousandths of a person. So the first
-- second after a quiet moment brings one second's people and the burst, not two seconds' people.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'mode', 'rate_milli', 'cap', 'claim_ttl_ms', 'opens_ms',
  'closes_ms', 'burst_ms', 'lobby_ms', 'window_ms')
local mode = cfg[1]
if not mode then return cmsgpack.pack({ 'NO_SALE' }) end
local limit = cmsgpack.unpack(ARGV[2])[1]
local opens, closes = tonumber(cfg[5] or '0'), tonumber(cfg[6] or '0')
local ctr = redis.call('HMGET', KEYS[2], 'tokens_milli', 'refilled_ms', 'served', 'measured_milli',
  'measured_ms', 'measured_calls', 'seq', 'drawn', 'filled')
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

local count = 0
local stopped = false
if mode == 'open' or mode == 'draining' then
  local inside = redis.call('ZCARD', KEYS[4]) + redis.call('ZCARD', KEYS[5])
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
redis.call('HSET', KEYS[2], 'tokens_milli', string.format('%.3f', tokens), 'refilled_ms', refilled,
  'measured_milli', math.floor(measured), 'measured_ms', since, 'measured_calls', calls)
return cmsgpack.pack({ 'OK', count, #absent, #lapsed, mode,
  stopped or #absent == limit or #lapsed == limit, to_fill })
