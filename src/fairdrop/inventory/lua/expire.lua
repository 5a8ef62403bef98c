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
-- Cost: O(limit x (units + log holds)).
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
local released, units, undecided = 0, 0, {}
for _, hold_id in ipairs(over) do
  local hold = redis.call('HGET', KEYS[4], hold_id)
  hold = hold and cmsgpack.unpack(hold)
  if not hold then
    redis.call('ZREM', KEYS[5], hold_id)
  elseif hold[4] == 1 then
    undecided[#undecided + 1] = { hold_id, hold[1] }
    redis.call('ZADD', KEYS[5], now + look_again, hold_id)
  else
    local count = 0
    for _, line in ipairs(hold[5]) do
      redis.call('RPUSH', KEYS[3] .. ':' .. line[1], unpack(line[2]))
      redis.call('HINCRBY', KEYS[2], line[1] .. ':h', -#line[2])
      count = count + #line[2]
    end
    redis.call('HDEL', KEYS[4], hold_id)
    redis.call('ZREM', KEYS[5], hold_id)
    if redis.call('HINCRBY', KEYS[6], hold[1], -count) <= 0 then
      redis.call('HDEL', KEYS[6], hold[1])
    end
    if redis.call('HGET', KEYS[7], hold[1]) == hold_id then
      redis.call('HDEL', KEYS[7], hold[1])
    end
    released = released + 1
    units = units + count
  end
end
return cmsgpack.pack({ 'OK', released, units, undecided, #over == limit })
