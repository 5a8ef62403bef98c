-- claim: turn a call into an admission with a lease (W11, W12).
--
-- KEYS: cfg line called active missed place adm ctr entrant
-- ARGV: now_ms (0 = the store's clock), msgpack [[visitor, fresh admission id], ...]
-- REPLY: msgpack [status, places, mode, served, tail, waiting, outflow_milli, lobby, outlook,
--   restoring_until], as status.lua has it, so that an admission's document needs no second call
--   a place is [state, position, rank, deadline_ms, admission, issued_s]
-- Status:
--   OK        the places follow, one a visitor, in order
--   NO_SALE   the store does not hold this sale
-- States:
--   ADMITTED      inside; repeated claims give the same admission and the same deadline, never a later one
--   WAITING       not called yet
--   MISSED        the claim window is over; joining again gives the old place back
--   LOBBY         the order is not drawn yet
--   NOT_ENTERED   has no place in this sale
-- Cost: O(log n) a visitor.
-- Invariant: a visitor leaves the called set and enters the active set in one step, so
-- called + active does not change here and the cap holds. admitted counts each admission once.
-- Repeat: the same answer; nothing changes.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'mode', 'lease_ttl_ms')
if not cfg[1] then return cmsgpack.pack({ 'NO_SALE' }) end
local lease_ttl = tonumber(cfg[2])
local admitted, places = 0, {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local visitor, fresh = item[1], item[2]
  local lease = tonumber(redis.call('ZSCORE', KEYS[4], visitor) or 'x')
  local claim_by = tonumber(redis.call('ZSCORE', KEYS[3], visitor) or 'x')
  if lease and lease > now then
    local id, at = string.match(redis.call('HGET', KEYS[7], visitor), '^(.*):(%d+)$')
    local pos = tonumber(redis.call('HGET', KEYS[6], visitor) or '0')
    places[i] = { 'ADMITTED', pos, 0, lease, id, tonumber(at) }
  elseif claim_by and claim_by > now then
    local issued = math.floor(now / 1000)
    redis.call('ZREM', KEYS[3], visitor)
    redis.call('ZADD', KEYS[4], now + lease_ttl, visitor)
    redis.call('HSET', KEYS[7], visitor, fresh .. ':' .. issued)
    admitted = admitted + 1
    local pos = tonumber(redis.call('HGET', KEYS[6], visitor) or '0')
    places[i] = { 'ADMITTED', pos, 0, now + lease_ttl, fresh, issued }
  elseif claim_by then
    places[i] = { 'MISSED', tonumber(redis.call('HGET', KEYS[6], visitor) or '0'), 0 }
  else
    local position = redis.call('ZSCORE', KEYS[2], visitor)
    local missed = redis.call('ZSCORE', KEYS[5], visitor)
    if position then
      places[i] = { 'WAITING', tonumber(position), redis.call('ZRANK', KEYS[2], visitor) }
    elseif missed then
      places[i] = { 'MISSED', tonumber(missed), 0 }
    else
      local entry = redis.call('HGET', KEYS[9], visitor) or '!'
      places[i] = { string.sub(entry, 1, 1) == '!' and 'NOT_ENTERED' or 'LOBBY', 0, 0 }
    end
  end
end
if admitted > 0 then redis.call('HINCRBY', KEYS[8], 'admitted', admitted) end
local ctr = redis.call('HMGET', KEYS[8], 'seq', 'served', 'outflow_milli', 'lobby', 'outlook',
  'restoring_until')
return cmsgpack.pack({ 'OK', places, cfg[1], tonumber(ctr[2] or '0'), tonumber(ctr[1] or '0'),
  redis.call('ZCARD', KEYS[2]), tonumber(ctr[3] or '-1'), tonumber(ctr[4] or '0'), ctr[5] or '',
  tonumber(ctr[6] or '0') })
