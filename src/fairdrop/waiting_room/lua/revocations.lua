-- revocations: how the ids of admissions begin that ended before their tokens expire; changes nothing (W12).
--
-- KEYS: cfg revoked
-- ARGV: now_ms (0 = the store's clock), msgpack [offset, limit, characters]
-- REPLY: msgpack [status, ids, more]
--   the longest-lived first; more is true when there may be another page
-- Status:
--   OK        the page follows
--   NO_SALE   the store does not hold this sale
-- Cost: O(log n + offset + limit).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local offset, limit, characters = unpack(cmsgpack.unpack(ARGV[2]))
local ids = redis.call('ZREVRANGEBYSCORE', KEYS[2], '+inf', '(' .. now, 'LIMIT', offset, limit)
for i, id in ipairs(ids) do ids[i] = string.sub(id, 1, characters) end
return cmsgpack.pack({ 'OK', ids, #ids == limit })
