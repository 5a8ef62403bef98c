-- commit: the order is confirmed; what its hold held is sold (O3).
--
-- KEYS: cfg stk holds due admhold verified
-- ARGV: now_ms (unused), msgpack [hold id, ...]
-- REPLY: msgpack [status, outcomes]
-- Status:
--   OK        the outcomes follow, one a hold, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   COMMITTED      the units count as sold; they still count to the buyer's limit
--   NOTHING_HELD   there is no such hold (any more); nothing changed
-- Cost: O(lines) and O(log holds) a hold.
-- Invariant: free + held + sold = quantity.
-- Repeat: COMMITTED becomes NOTHING_HELD; nothing changes.
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end

-- Reads all, then writes each structure once: a command costs more than what it carries.
local function commit(ids, outcomes)
  local ended, buyers, units, seen = {}, {}, {}, {}
  for i, packed in ipairs(redis.call('HMGET', KEYS[3], unpack(ids))) do
    local hold_id = ids[i]
    if packed and not seen[hold_id] then
      local hold = cmsgpack.unpack(packed)
      seen[hold_id] = true
      for _, line in ipairs(hold[5]) do
        units[line[1]] = (units[line[1]] or 0) + #line[2]
      end
      ended[#ended + 1] = hold_id
      buyers[#buyers + 1] = hold[1]
      for _, mark in ipairs(hold[6] or {}) do
        if redis.call('HGET', KEYS[6], mark) == hold_id then redis.call('HDEL', KEYS[6], mark) end
      end
      outcomes[#outcomes + 1] = 'COMMITTED'
    else
      outcomes[#outcomes + 1] = 'NOTHING_HELD'
    end
  end
  if #ended == 0 then return end
  for variant, count in pairs(units) do
    redis.call('HINCRBY', KEYS[2], variant .. ':h', -count)
    redis.call('HINCRBY', KEYS[2], variant .. ':s', count)
  end
  redis.call('HDEL', KEYS[3], unpack(ended))
  redis.call('ZREM', KEYS[4], unpack(ended))
  local used = {}
  for k, held in ipairs(redis.call('HMGET', KEYS[5], unpack(buyers))) do
    if held == ended[k] then
      -- The admission is used up: until the waiting room ends it, it reserves nothing more (W13).
      used[#used + 1] = buyers[k]
      used[#used + 1] = ''
    end
  end
  if #used > 0 then redis.call('HSET', KEYS[5], unpack(used)) end
end

local ids, outcomes = cmsgpack.unpack(ARGV[2]), {}
for from = 1, #ids, 1000 do  -- Lua passes a few thousand arguments at most
  commit({ unpack(ids, from, math.min(from + 999, #ids)) }, outcomes)
end
return cmsgpack.pack({ 'OK', outcomes })
