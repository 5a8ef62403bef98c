-- called: who has been called and has not entered yet, those called last included; changes nothing (W7).
--
-- KEYS: cfg called
-- ARGV: now_ms (0 = the store's clock), msgpack [from_ms, limit]
--   only claim deadlines of from_ms and later
-- REPLY: msgpack [status, claim_ttl_ms, [[visitor, claim deadline_ms], ...], more]
--   the earliest deadlines first; more is true when the limit left some out
-- Status:
--   OK        the people follow
--   NO_SALE   the store does not hold this sale
-- Cost: O(log n + limit).
-- Invariant: a reader that remembers the latest deadline it saw and asks from there on misses nobody as
-- long as claim_ttl_ms stays the same: deadlines are given out in order. When it changes, or the store's
-- clock is set, asking from the present on once more makes that good.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local claim_ttl = redis.call('HGET', KEYS[1], 'claim_ttl_ms')
if not claim_ttl then return cmsgpack.pack({ 'NO_SALE' }) end
local from, limit = unpack(cmsgpack.unpack(ARGV[2]))
-- Whose window is over is no longer invited, although no tick may have met them yet.
local least = from > now and from or '(' .. now
local found = redis.call('ZRANGEBYSCORE', KEYS[2], least, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
local people = {}
for i = 1, #found, 2 do people[#people + 1] = { found[i], tonumber(found[i + 1]) } end
return cmsgpack.pack({ 'OK', tonumber(claim_ttl), people, #people == limit })
