-- front: give invited visitors a place ahead of everybody who joins by themselves (W19).
--
-- KEYS: cfg ctr line called active missed entrant
-- ARGV: now_ms (unused), msgpack [[visitor, class, early], ...]
--   class 1 stands ahead of class 2; early: also before the lobby opens
-- REPLY: msgpack [status, outcomes]
-- Status:
--   OK        the outcomes follow, one a visitor, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   PLACED      the visitor stands at the front now
--   UNCHANGED   already there, called, inside, or back with an old place to take again
--   TOO_EARLY   the lobby is not open yet, and early was not asked for
--   SHUT        the sale takes nobody in any more
-- Cost: O(log n) a visitor.
-- Invariant: joined = lobby + waiting + called + active + missed + left + done. Places at the front have
-- negative numbers, in the order in which this script gave them: -2,000,000,000 and up for class 1,
-- -1,000,000,000 and up for class 2; those that arrivals and the draw give begin at 1.
-- Repeat: PLACED becomes UNCHANGED; nothing changes.
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then return cmsgpack.pack({ 'NO_SALE' }) end
local opens = tonumber(redis.call('HGET', KEYS[1], 'opens_ms') or '0')
local outcomes = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local visitor, class, early = item[1], item[2], item[3]
  local base = class == 1 and -2000000000 or -1000000000
  local position = tonumber(redis.call('ZSCORE', KEYS[3], visitor) or 'x')
  local entry = redis.call('HGET', KEYS[7], visitor)
  if redis.call('ZSCORE', KEYS[4], visitor) or redis.call('ZSCORE', KEYS[5], visitor)
    or redis.call('ZSCORE', KEYS[6], visitor) or (position and position < base + 1000000000) then
    outcomes[i] = 'UNCHANGED'
  elseif mode == 'closed' or mode == 'draining' then
    outcomes[i] = 'SHUT'
  elseif mode == 'scheduled' and not early and opens > 0 then
    outcomes[i] = 'TOO_EARLY'
  else
    local number = redis.call('HINCRBY', KEYS[2], 'front', 1)
    redis.call('ZADD', KEYS[3], base + number, visitor)
    if entry and string.sub(entry, 1, 1) ~= '!' and not position
      and tonumber(redis.call('HGET', KEYS[2], 'lobby') or '0') > 0 then
      -- Out of the draw, as if they had left the lobby; their place in its list stays empty.
      redis.call('HSET', KEYS[7], visitor, '!' .. entry)
      redis.call('HINCRBY', KEYS[2], 'lobby', -1)
    elseif not position then
      redis.call('HINCRBY', KEYS[2], 'joined', 1)
    end
    outcomes[i] = 'PLACED'
  end
end
return cmsgpack.pack({ 'OK', outcomes })
