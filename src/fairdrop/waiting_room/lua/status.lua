-- status: where each visitor stands; changes nothing (W5).
--
-- KEYS: cfg ctr line called active missed place adm entrant
-- ARGV: now_ms (0 = the store's clock), msgpack [visitor, ...]
-- REPLY: msgpack [status, places, mode, served, tail, waiting, outflow_milli, lobby, outlook,
--   restoring_until]
--   a place is [state, position, rank, deadline_ms, admission, issued_s, entry]; outflow_milli is -1
--   before it was measured; outlook is '<free>:<held>:<quantity>:<inside without units>:<admitted>' (W16)
-- Status:
--   OK        the places follow, one a visitor, in order
--   NO_SALE   the store does not hold this sale
-- States:
--   ADMITTED      inside; deadline_ms is the end of the lease
--   READY         called; deadline_ms is the end of the claim window
--   WAITING       in the line; rank counts the people ahead
--   MISSED        called, but did not claim in time; joining again gives the old place back
--   LOBBY         takes part in the draw with its entry id
--   NOT_ENTERED   has no place in this sale
--   CLOSED        has no place, and the sale takes nobody in any more
-- Cost: O(log n) a visitor who waits, O(1) for others; four reads for the whole batch.
-- Invariant: admission is looked at before rank, so nobody just admitted is told they are not in line.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then return cmsgpack.pack({ 'NO_SALE' }) end
local visitors = cmsgpack.unpack(ARGV[2])
local ctr = redis.call('HMGET', KEYS[2], 'seq', 'served', 'outflow_milli', 'lobby', 'drawn', 'outlook',
  'restoring_until')
local called = redis.call('ZMSCORE', KEYS[4], unpack(visitors))
local active = redis.call('ZMSCORE', KEYS[5], unpack(visitors))
local missed = redis.call('ZMSCORE', KEYS[6], unpack(visitors))
local lines = redis.call('ZMSCORE', KEYS[3], unpack(visitors))
local lobby, drawn = tonumber(ctr[4] or '0'), tonumber(ctr[5] or '0')
local entrants = lobby > 0 and redis.call('HMGET', KEYS[9], unpack(visitors)) or {}

local places = {}
for i, visitor in ipairs(visitors) do
  local place
  if active[i] and tonumber(active[i]) > now then
    local issued = redis.call('HGET', KEYS[8], visitor) or ':0'
    local id, at = string.match(issued, '^(.*):(%d+)$')
    local pos = tonumber(redis.call('HGET', KEYS[7], visitor) or '0')
    place = { 'ADMITTED', pos, 0, tonumber(active[i]), id, tonumber(at) }
  elseif called[i] then
    local claim_by = tonumber(called[i])
    local pos = tonumber(redis.call('HGET', KEYS[7], visitor) or '0')
    place = { claim_by > now and 'READY' or 'MISSED', pos, 0, claim_by }
  elseif lines[i] then
    -- People of the draw who are not in the line yet stand ahead of all who came later.
    local undrawn = tonumber(lines[i]) > drawn and lobby or 0
    place = { 'WAITING', tonumber(lines[i]), redis.call('ZRANK', KEYS[3], visitor) + undrawn }
  elseif missed[i] then
    place = { 'MISSED', tonumber(missed[i]), 0 }
  elseif mode ~= 'closed' and entrants[i] and string.sub(entrants[i], 1, 1) ~= '!' then
    place = { 'LOBBY', 0, 0, 0, '', 0, entrants[i] }
  elseif mode == 'closed' or mode == 'draining' then
    place = { 'CLOSED', 0, 0 }
  else
    place = { 'NOT_ENTERED', 0, 0 }
  end
  places[i] = place
end
return cmsgpack.pack({ 'OK', places, mode, tonumber(ctr[2] or '0'), tonumber(ctr[1] or '0'),
  redis.call('ZCARD', KEYS[3]), tonumber(ctr[3] or '-1'), lobby, ctr[6] or '', tonumber(ctr[7] or '0') })
