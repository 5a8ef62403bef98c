-- join: give each visitor one place in the line, or say where they already stand (W1, W2).
--
-- KEYS: cfg ctr line called active missed place adm admhold
-- ARGV: now_ms (0 = the store's clock), msgpack [visitor, ...]
-- REPLY: msgpack [status, places, mode, served, tail, waiting, measured_milli]
--   a place is [state, position, rank, deadline_ms, admission, issued_s]
-- Status:
--   OK        the places follow, one a visitor, in order
--   NO_SALE   the store does not hold this sale (lost, or never loaded): nobody is admitted (W14)
-- States:
--   ADMITTED      inside; deadline_ms is the end of the lease
--   READY         called; deadline_ms is the end of the claim window
--   WAITING       in the line; rank counts the people ahead
--   NOT_ENTERED   the sale is not open yet, no place was given
--   CLOSED        the sale takes nobody in any more, no place was given
-- Cost: O(log n) a visitor; five reads for the whole batch.
-- Invariant: joined = waiting + called + active + missed + left + done. A visitor is in at most one
-- of line, called, active, missed. The sequence number is taken here and nowhere else, so arrival
-- order is the order in which this script saw people, whatever their servers' clocks say.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then return cmsgpack.pack({ 'NO_SALE' }) end
local visitors = cmsgpack.unpack(ARGV[2])
local ctr = redis.call('HMGET', KEYS[2], 'seq', 'served', 'joined', 'left', 'measured_milli')
local seq = tonumber(ctr[1] or '0')
local joined = tonumber(ctr[3] or '0')
local left = tonumber(ctr[4] or '0')
local joined_before, left_before = joined, left
local waiting = redis.call('ZCARD', KEYS[3])

local lines = redis.call('ZMSCORE', KEYS[3], unpack(visitors))
local called = redis.call('ZMSCORE', KEYS[4], unpack(visitors))
local active = redis.call('ZMSCORE', KEYS[5], unpack(visitors))
local missed = redis.call('ZMSCORE', KEYS[6], unpack(visitors))

local places, seen = {}, {}
for i, visitor in ipairs(visitors) do
  local place = seen[visitor]
  if not place then
    local lease, claim_by = tonumber(active[i] or 'x'), tonumber(called[i] or 'x')
    local position, missed_at = tonumber(lines[i] or 'x'), tonumber(missed[i] or 'x')
    if lease and lease <= now then
      -- The lease is over although no sweep has met it yet: this person is out.
      redis.call('ZREM', KEYS[5], visitor)
      redis.call('HDEL', KEYS[7], visitor)
      redis.call('HDEL', KEYS[8], visitor)
      redis.call('HDEL', KEYS[9], visitor)
      left = left + 1
      lease = nil
    end
    if claim_by and claim_by <= now then
      missed_at = tonumber(redis.call('HGET', KEYS[7], visitor))
      redis.call('ZREM', KEYS[4], visitor)
      redis.call('HDEL', KEYS[7], visitor)
      redis.call('ZADD', KEYS[6], missed_at, visitor)
      claim_by = nil
    end
    if lease then
      local issued = redis.call('HGET', KEYS[8], visitor) or ':0'
      local id, at = string.match(issued, '^(.*):(%d+)$')
      local pos = tonumber(redis.call('HGET', KEYS[7], visitor) or '0')
      place = { 'ADMITTED', pos, 0, lease, id, tonumber(at) }
    elseif claim_by then
      place = { 'READY', tonumber(redis.call('HGET', KEYS[7], visitor) or '0'), 0, claim_by }
    elseif position then
      place = { 'WAITING', position, redis.call('ZRANK', KEYS[3], visitor) }
    elseif missed_at and mode ~= 'closed' then
      -- Back after having missed the call: the old place, which is ahead of all who wait (W11).
      redis.call('ZREM', KEYS[6], visitor)
      redis.call('ZADD', KEYS[3], missed_at, visitor)
      waiting = waiting + 1
      place = { 'WAITING', missed_at, redis.call('ZRANK', KEYS[3], visitor) }
    elseif mode == 'closed' or mode == 'draining' then
      place = { 'CLOSED', 0, 0 }
    elseif mode ~= 'open' and mode ~= 'paused' then
      place = { 'NOT_ENTERED', 0, 0 }
    else
      seq = seq + 1
      joined = joined + 1
      redis.call('ZADD', KEYS[3], seq, visitor)
      place = { 'WAITING', seq, waiting }
      waiting = waiting + 1
    end
    seen[visitor] = place
  end
  places[i] = place
end
if joined ~= joined_before or left ~= left_before then
  redis.call('HSET', KEYS[2], 'seq', seq, 'joined', joined, 'left', left)
end
return cmsgpack.pack({ 'OK', places, mode, tonumber(ctr[2] or '0'), seq, waiting,
  tonumber(ctr[5] or '0') })
