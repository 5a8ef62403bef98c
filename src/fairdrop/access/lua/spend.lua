-- spend: use up things that count once, such as the solution of a challenge (W18).
--
-- KEYS: spent
-- ARGV: now_ms (unused), msgpack [item, ...]; an item is
--   [id, milliseconds until it is worthless anyway, attempt]; each attempt has a name of its own
-- REPLY: msgpack [status, outcomes]
-- Status:
--   OK        the outcomes follow, one an id, in order
-- Outcomes:
--   FRESH     it was not used before, or by the same attempt, and is used now
--   SPENT     another attempt has used it; nothing changed
-- Cost: O(1) an id.
-- Invariant: of all attempts with an id, as long as it is worth anything, one gets FRESH.
-- Repeat: the same answer; nothing changes.
local outcomes = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local by = redis.call('SET', KEYS[1] .. ':' .. item[1], item[3], 'NX', 'GET', 'PX', item[2])
  outcomes[i] = (not by or by == item[3]) and 'FRESH' or 'SPENT'
end
return cmsgpack.pack({ 'OK', outcomes })
