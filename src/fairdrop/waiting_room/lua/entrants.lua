-- entrants: read a piece of the lobby's list, in order of arrival (W3); changes nothing.
--
-- KEYS: cfg ctr lobby
-- ARGV: now_ms (unused), msgpack [first, count]; first counts from 0
-- REPLY: msgpack [status, drawn, filled, [<entry id><visitor>, ...]]
--   drawn is how long the list is, filled how many places of the draw are in the line
-- Status:
--   OK        the piece follows
--   NOT_SHUT  the lobby may still grow; the piece follows, drawn is how long the list is by now
--   NO_SALE   the store does not hold this sale
-- Cost: O(first + count).
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then return cmsgpack.pack({ 'NO_SALE' }) end
local ctr = redis.call('HMGET', KEYS[2], 'drawn', 'filled')
local args = cmsgpack.unpack(ARGV[2])
local piece = redis.call('LRANGE', KEYS[3], args[1], args[1] + args[2] - 1)
local filled = tonumber(ctr[2] or '0')
if not ctr[1] then
  return cmsgpack.pack({ 'NOT_SHUT', redis.call('LLEN', KEYS[3]), filled, piece })
end
return cmsgpack.pack({ 'OK', tonumber(ctr[1]), filled, piece })
