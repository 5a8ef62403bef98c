-- restore: give people the places back that their receipts prove, after the store lost the line (W15).
--
-- KEYS: cfg ctr line called active missed place adm admhold holds buyer
-- ARGV: now_ms (0 = the store's clock), msgpack [item, ...]; an item is
--   [visitor, position, admission or false, issued_s, lease deadline_ms, hold id or false]
--   with an admission it was alive when the store was lost, as far as the database knows
-- REPLY: msgpack [status, outcomes]
-- Status:
--   OK        the outcomes follow, one an item, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   RESTORED          the visitor waits at the old position
--   ADMITTED_AGAIN    the visitor is inside until the end of the old lease
--   HAS_PLACE         the visitor has a place already; nothing changed
--   PLACE_USED        the visitor has units from that place; nothing changed
--   SALE_CLOSED       nobody gets in any more; nothing changed
-- Cost: O(log n) an item.
-- Invariant: called + active never exceed the cap: whoever was inside and finds no room waits at the
-- old position, ahead of all who were behind them. Each place is given back once at the most. The
-- sequence goes on behind every position that came back, and so does that of invited people (front.lua).
-- Repeat: RESTORED and ADMITTED_AGAIN become HAS_PLACE; nothing changes.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'mode', 'cap')
if not cfg[1] then return cmsgpack.pack({ 'NO_SALE' }) end
local inside = redis.call('ZCARD', KEYS[4]) + redis.call('ZCARD', KEYS[5])
local ctr = redis.call('HMGET', KEYS[2], 'seq', 'served', 'front')
local seq, served, front = tonumber(ctr[1] or '0'), tonumber(ctr[2] or '0'), tonumber(ctr[3] or '0')
local outcomes, restored, admitted = {}, 0, 0
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local visitor, position, admission, issued_s, lease, hold = unpack(item, 1, 6)
  local placed = redis.call('ZSCORE', KEYS[3], visitor) or redis.call('ZSCORE', KEYS[4], visitor)
    or redis.call('ZSCORE', KEYS[5], visitor) or redis.call('ZSCORE', KEYS[6], visitor)
  if placed then
    outcomes[i] = 'HAS_PLACE'
  elseif cfg[1] == 'closed' then
    outcomes[i] = 'SALE_CLOSED'
  elseif not admission and tonumber(redis.call('HGET', KEYS[11], visitor) or '0') > 0 then
    outcomes[i] = 'PLACE_USED'
  elseif admission and lease > now and inside < tonumber(cfg[2]) then
    redis.call('ZADD', KEYS[5], lease, visitor)
    redis.call('HSET', KEYS[7], visitor, position)
    redis.call('HSET', KEYS[8], visitor, admission .. ':' .. issued_s)
    if hold and redis.call('HEXISTS', KEYS[10], hold) == 1 then
      redis.call('HSET', KEYS[9], visitor, hold)
    end
    inside = inside + 1
    admitted = admitted + 1
    served = math.max(served, position)
    outcomes[i] = 'ADMITTED_AGAIN'
  else
    redis.call('ZADD', KEYS[3], position, visitor)
    restored = restored + 1
    outcomes[i] = 'RESTORED'
  end
  if outcomes[i] == 'RESTORED' or outcomes[i] == 'ADMITTED_AGAIN' then
    seq = math.max(seq, position)
    if position < 0 then front = math.max(front, position % 1000000000) end
  end
end
if restored + admitted > 0 then
  redis.call('HSET', KEYS[2], 'seq', seq, 'served', served, 'front', front)
  redis.call('HINCRBY', KEYS[2], 'joined', restored + admitted)
  redis.call('HINCRBY', KEYS[2], 'restored', restored + admitted)
  if admitted > 0 then
    redis.call('HINCRBY', KEYS[2], 'admitted', admitted)
    redis.call('HINCRBY', KEYS[2], 'restored_inside', admitted)
  end
end
return cmsgpack.pack({ 'OK', outcomes })
