-- spend: use up things that count once, such as the solution of a challenge (W18).
--
-- KEYS: spent
-- ARGV: now_ms (unused), msgpack [[id, milliseconds until it is worthless anyway], ...]
-- REPLY: msgpack [status, outcomes]
-- Status:
--   OK        the outcomes follow, one an id, in order
-- Outcomes:
--   FRESH     it was not used before, and is used now
--   SPENT     it was used before; nothing changed
-- Cost: O(1) an id.
-- Invariant: of all calls with an id, as long as it is worth anything, one gets FRESH.
local outcomes = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local fresh = redis.call('SET', KEYS[1] .. ':' .. item[1], '', 'NX', 'PX', item[2])
  outcomes[i] = fresh and 'FRESH' or 'SPENT'
end
return cmsgpack.pack({ 'OK', outcomes })
