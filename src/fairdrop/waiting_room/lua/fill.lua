-- fill: put the next people of the draw into the line, in the drawn order (W3).
--
-- KEYS: cfg ctr line lobby entrant
-- ARGV: now_ms (unused), msgpack [first position, [visitor, ...]]; positions count from 1
-- REPLY: msgpack [status, filled, placed]
--   filled counts the places of the draw that are done, placed the people who now stand in the line
-- Status:
--   OK         these places are done; those of people who have left stay empty
--   ELSEWHERE  the next place to fill is filled + 1: this piece is done, or comes too early
--   NOT_SHUT   the lobby may still grow: nothing can have been drawn
--   NO_SALE    the store does not hold this sale
-- Cost: O(n log m) for n people and m in the line; about 2 us a person.
-- Invariant: a person leaves the lobby and enters the line in one step, at the place that the draw gave
-- them. Each piece counts once, so any number of workers may fill at one time, and one that begins
-- again begins where the last one stopped. The first piece opens the sale.
-- Repeat: OK becomes ELSEWHERE; nothing changes.
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then return cmsgpack.pack({ 'NO_SALE' }) end
local ctr = redis.call('HMGET', KEYS[2], 'drawn', 'filled', 'lobby')
local drawn, filled = tonumber(ctr[1] or 'x'), tonumber(ctr[2] or '0')
if not drawn then return cmsgpack.pack({ 'NOT_SHUT', filled, 0 }) end
local args = cmsgpack.unpack(ARGV[2])
local first, visitors = args[1], args[2]
if first ~= filled + 1 or filled + #visitors > drawn then
  return cmsgpack.pack({ 'ELSEWHERE', filled, 0 })
end
local entries = redis.call('HMGET', KEYS[5], unpack(visitors))
local places, count = {}, 0
for i, visitor in ipairs(visitors) do
  if entries[i] and string.byte(entries[i]) ~= 33 then
    places[2 * count + 1], places[2 * count + 2] = filled + i, visitor
    count = count + 1
  end
end
if count > 0 then redis.call('ZADD', KEYS[3], unpack(places)) end
redis.call('HDEL', KEYS[5], unpack(visitors))
filled = filled + #visitors
redis.call('HSET', KEYS[2], 'filled', filled, 'lobby', tonumber(ctr[3] or '0') - count)
if mode == 'drawing' then redis.call('HSET', KEYS[1], 'mode', 'open') end
if filled == drawn then redis.call('UNLINK', KEYS[4], KEYS[5]) end
return cmsgpack.pack({ 'OK', filled, count })
