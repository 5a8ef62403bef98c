-- expire: release holds whose deadline has passed; name those whose order must decide (H4, H7).
--
-- KEYS: cfg stk ret holds due buyer admhold verified
-- ARGV: now_ms (0 = the store's clock), msgpack [limit, look_again_ms, units]
--   looks at holds until the limit, or until so many units are free again, whichever comes first
-- REPLY: msgpack [status, released holds, released units, undecided, more]
--   undecided are [hold id, buyer] in the checkout phase past their deadline: ask their orders. Each
--   is put off by look_again_ms, so that workers side by side do not all ask about the same ones.
-- Status:
--   OK        the run is done
--   NO_SALE   the store does not hold this sale
-- Cost: O(limit x log holds + units), a few commands for the whole run: however many deadlines pass
-- at one moment, and however much each hold holds, the store stops for about 1 ms (case 37).
-- Invariant: a hold that has an order is never released here. free + held + sold = quantity.
-- Repeat: goes on where it stopped; who is told of an undecided hold and dies is followed by another
-- after look_again_ms.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local args = cmsgpack.unpack(ARGV[2])
local limit, look_again, most_units = args[1], args[2], args[3]
local over = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now, 'LIMIT', 0, limit)
if #over == 0 then return cmsgpack.pack({ 'OK', 0, 0, {}, false }) end
local packed = redis.call('HMGET', KEYS[4], unpack(over))
local released, units, undecided, more = 0, 0, {}, #over == limit
local gone, later, back, owned, buyers, theirs = {}, {}, {}, {}, {}, {}
for i, hold_id in ipairs(over) do
  if units >= most_units then
    more = true
    break
  end
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
        local serials = back[line[1]] or {}
        back[line[1]] = serials
        for _, serial in ipairs(line[2]) do serials[#serials + 1] = serial end
        count = count + #line[2]
      end
      owned[hold[1]] = (owned[hold[1]] or 0) + count
      buyers[#buyers + 1] = hold[1]
      theirs[#theirs + 1] = hold_id
      for _, mark in ipairs(hold[6] or {}) do
        if redis.call('HGET', KEYS[8], mark) == hold_id then redis.call('HDEL', KEYS[8], mark) end
      end
      released = released + 1
      units = units + count
    end
  end
end
-- What holds held is gathered first and written once a structure: a command costs more than its work.
for variant, serials in pairs(back) do
  for from = 1, #serials, 1000 do  -- Lua passes a few thousand arguments at most
    redis.call('RPUSH', KEYS[3] .. ':' .. variant, unpack(serials, from, math.min(from + 999, #serials)))
  end
  redis.call('HINCRBY', KEYS[2], variant .. ':h', -#serials)
end
if #gone > 0 then
  redis.call('HDEL', KEYS[4], unpack(gone))
  redis.call('ZREM', KEYS[5], unpack(gone))
end
if #later > 0 then redis.call('ZADD', KEYS[5], unpack(later)) end
if #buyers > 0 then
  local names, keep, none = {}, {}, {}
  for buyer in pairs(owned) do names[#names + 1] = buyer end
  for i, has in ipairs(redis.call('HMGET', KEYS[6], unpack(names))) do
    local left = tonumber(has or '0') - owned[names[i]]
    if left > 0 then
      keep[#keep + 1] = names[i]
      keep[#keep + 1] = left
    else
      none[#none + 1] = names[i]
    end
  end
  if #keep > 0 then redis.call('HSET', KEYS[6], unpack(keep)) end
  if #none > 0 then redis.call('HDEL', KEYS[6], unpack(none)) end
  local current, over_with = redis.call('HMGET', KEYS[7], unpack(buyers)), {}
  for i, buyer in ipairs(buyers) do
    if current[i] == theirs[i] then over_with[#over_with + 1] = buyer end
  end
  if #over_with > 0 then redis.call('HDEL', KEYS[7], unpack(over_with)) end
end
return cmsgpack.pack({ 'OK', released, units, undecided, more })
