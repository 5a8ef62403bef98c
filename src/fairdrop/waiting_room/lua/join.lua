-- join: give each visitor one place in the lobby or the line, or say where they already stand (W1, W2, W3).
--
-- KEYS: cfg ctr line called active missed place adm admhold lobby entrant
-- ARGV: now_ms (0 = the store's clock), msgpack [[visitor, fresh entry id], ...]
--   an entry id has 22 characters
-- REPLY: msgpack [status, places, mode, served, tail, waiting, outflow_milli, lobby, outlook,
--   restoring_until]
--   a place is [state, position, rank, deadline_ms, admission, issued_s, entry]; outflow_milli is -1
--   before it was measured; outlook is '<free>:<held>:<quantity>:<inside without units>:<admitted>' (W16)
-- Status:
--   OK        the places follow, one a visitor, in order
--   NO_SALE   the store does not hold this sale (lost, or never loaded): nobody is admitted (W14)
-- States:
--   ADMITTED      inside; deadline_ms is the end of the lease
--   READY         called; deadline_ms is the end of the claim window
--   WAITING       in the line; rank counts the people ahead
--   LOBBY         takes part in the draw with its entry id; repeated joins give the same one
--   NOT_ENTERED   neither the lobby nor the sale is open yet, no place was given
--   LINE_FULL     as many people wait as the units that are left allow, no place was given (W16)
--   CLOSED        the sale takes nobody in any more, no place was given
-- Cost: O(log n) a visitor; five reads for the whole batch.
-- Invariant: joined = lobby + waiting + called + active + missed + left + done. A visitor is in at
-- most one of lobby, line, called, active, missed. The sequence number is taken here and nowhere
-- else, so arrival order is the order in which this script saw people, whatever their servers'
-- clocks say. Entrants of the lobby take the numbers 1..drawn; the first arrival after the opening
-- window (or tick) shuts the lobby for ever, and stands behind all of them.
-- Repeat: the same answer; nothing changes.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'mode', 'opens_ms', 'lobby_ms', 'window_ms')
local mode = cfg[1]
if not mode then return cmsgpack.pack({ 'NO_SALE' }) end
local visitors, entries = {}, {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  visitors[i], entries[i] = item[1], item[2]
end
local ctr = redis.call('HMGET', KEYS[2], 'seq', 'served', 'joined', 'left', 'outflow_milli', 'lobby',
  'drawn', 'outlook', 'restoring_until', 'line_cap')
local seq = tonumber(ctr[1] or '0')
local joined = tonumber(ctr[3] or '0')
local left = tonumber(ctr[4] or '0')
local line_cap = tonumber(ctr[10] or 'x')
local joined_before, left_before = joined, left
local waiting = redis.call('ZCARD', KEYS[3])
local lobby, drawn = tonumber(ctr[6] or '0'), tonumber(ctr[7] or 'x')
local opens, lobby_ms = tonumber(cfg[2] or '0'), tonumber(cfg[3] or '0')
local before_opening = mode == 'scheduled' or mode == 'lobby'
local enters, late = false, mode == 'open' or mode == 'paused' or mode == 'drawing'
if before_opening and lobby_ms > 0 then
  local window_over = now >= opens + tonumber(cfg[4] or '0')
  enters = not drawn and not window_over and (mode == 'lobby' or now >= opens - lobby_ms)
  late = drawn or window_over
end
local entrants = {}
if enters or lobby > 0 then entrants = redis.call('HMGET', KEYS[11], unpack(visitors)) end

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
      -- People of the draw who are not in the line yet stand ahead of all who came later.
      local undrawn = position > (drawn or 0) and lobby or 0
      place = { 'WAITING', position, redis.call('ZRANK', KEYS[3], visitor) + undrawn }
    elseif missed_at and mode ~= 'closed' then
      -- Back after having missed the call: the old place, which is ahead of all who wait (W11).
      redis.call('ZREM', KEYS[6], visitor)
      redis.call('ZADD', KEYS[3], missed_at, visitor)
      waiting = waiting + 1
      place = { 'WAITING', missed_at, redis.call('ZRANK', KEYS[3], visitor) }
    elseif mode == 'closed' then
      place = { 'CLOSED', 0, 0 }
    elseif entrants[i] and string.sub(entrants[i], 1, 1) ~= '!' then
      place = { 'LOBBY', 0, 0, 0, '', 0, entrants[i] }
    elseif mode == 'draining' then
      place = { 'CLOSED', 0, 0 }
    elseif enters then
      -- Who left the lobby and comes back has the old entry: coming and going makes no second one.
      local entry = entries[i]
      if entrants[i] then
        entry = string.sub(entrants[i], 2)
      else
        seq = seq + 1
        redis.call('RPUSH', KEYS[10], entry .. visitor)
      end
      redis.call('HSET', KEYS[11], visitor, entry)
      joined = joined + 1
      lobby = lobby + 1
      place = { 'LOBBY', 0, 0, 0, '', 0, entry }
    elseif late and line_cap and waiting + lobby >= line_cap then
      place = { 'LINE_FULL', 0, 0 }
    elseif late then
      if not drawn then
        drawn = redis.call('LLEN', KEYS[10])
        redis.call('HSET', KEYS[2], 'drawn', drawn)
      end
      seq = seq + 1
      joined = joined + 1
      redis.call('ZADD', KEYS[3], seq, visitor)
      place = { 'WAITING', seq, waiting + lobby }
      waiting = waiting + 1
    else
      place = { 'NOT_ENTERED', 0, 0 }
    end
    seen[visitor] = place
  end
  places[i] = place
end
if joined ~= joined_before or left ~= left_before then
  redis.call('HSET', KEYS[2], 'seq', seq, 'joined', joined, 'left', left, 'lobby', lobby)
end
return cmsgpack.pack({ 'OK', places, mode, tonumber(ctr[2] or '0'), seq, waiting,
  tonumber(ctr[5] or '-1'), lobby, ctr[8] or '', tonumber(ctr[9] or '0') })
