-- expire: release holds whose deadline has passed; name those whose order must decide (H4, H7).
--
-- KEYS: cfg stk ret holds due buyer admhold
-- ARGV: now_ms (0 = the store's clock), msgpack [limit, look_again_ms]
-- REPLY: msgpack [status, released holds, released units, undecided, more]
--   undecided are [hold id, buyer] in the checkout phase past their deadline: ask their orders. Each
--   is put off by look_again_ms, so that workers side by side do not all ask about the same ones.
-- Status:
--   OK        the run is done
--   NO_SALE   the store does not hold this sale
-- Cost: O(limit x (units + log holds)); two commands a hold, the rest once for the run.
-- Invariant: a hold that has an order is never released here. free + held + sold = quantity.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local args = cmsgpack.unpack(ARGV[2])
local limit, look_again = args[1], args[2]
local over = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now, 'LIMIT', 0, limit)
if #over == 0 then return cmsgpack.pack({ 'OK', 0, 0, {}, false }) end
local packed = redis.call('HMGET', KEYS[4], unpack(over))
local released, units, undecided = 0, 0, {}
local gone, later, held, owned, buyers, theirs = {}, {}, {}, {}, {}, {}
for i, hold_id in ipairs(over) do
  local hold = packed[i] and cmsgpack.unpack(packed[i])
  if hold and hold[4] == 1 then
    undecided[#undecided + 1] = { hold_id, hold[1] }
    later[#later + 1] = now + look_again
    later[#later + 1] = hold_id
  else
    gone[#gone + 1] = hold_id
    if hold then
      local count = 0
      for _, line in ipairs(hold[5]) do
        redis.call('RPUSH', KEYS[3] .. ':' .. line[1], unpack(line[2]))
        held[line[1]] = (held[line[1]] or 0) + #line[2]
        count = count + #line[2]
      end
      owned[hold[1]] = (owned[hold[1]] or 0) + count
      buyers[#buyers + 1] = hold[1]
      theirs[#theirs + 1] = hold_id
      released = released + 1
      units = units + count
    end
  end
end
for variant, count in pairs(held) do redis.call('HINCRBY', KEYS[2], variant .. ':h', -count) end
for buyer, count in pairs(owned) do
  if redis.call('HINCRBY', KEYS[6], buyer, -count) <= 0 then redis.call('HDEL', KEYS[6], buyer) end
end
if #gone > 0 then
  redis.call('HDEL', KEYS[4], unpack(gone))
  redis.call('ZREM', KEYS[5], unpack(gone))
end
if #later > 0 then redis.call('ZADD', KEYS[5], unpack(later)) end
if #buyers > 0 then
  local current, over_with = redis.call('HMGET', KEYS[7], unpack(buyers)), {}
  for i, buyer in ipairs(buyers) do
    if current[i] == theirs[i] then over_with[#over_with + 1] = buyer end
  end
  if #over_with > 0 then redis.call('HDEL', KEYS[7], unpack(over_with)) end
end
return cmsgpack.pack({ 'OK', released, units, undecided, #over == limit })
