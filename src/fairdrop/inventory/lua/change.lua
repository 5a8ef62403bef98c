-- change: have other quantities in a reservation: give some back, take more, all or nothing (H4, H5, H6).
--
-- KEYS: cfg stk ret holds due buyer active adm admhold idem verified
-- ARGV: now_ms (0 = the store's clock), msgpack [item, ...]
--   an item is [buyer, hold id, idempotency key or '', fingerprint, [variant, quantity, ...]]
--   a quantity of 0 or more is what the hold shall have of the variant; one below 0 gives so many
--   back, as far as there are any. Variants that are not named stay as they are.
-- REPLY: msgpack [status, outcomes]; an outcome is [code, deadline_ms, lines, units, detail]
--   lines are [[variant, [serial, ...]], ...] that the hold has now, units how many are free again
-- Status:
--   OK        the outcomes follow, one an item, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   CHANGED           the hold has the lines told, until the same deadline as before
--   RELEASED          nothing is left in the hold: it has ended
--   NOTHING_HELD      there is no such hold of this buyer (any more); nothing changed
--   EXPIRED           the deadline has passed, although no sweep has run yet (H4); nothing changed
--   ORDER_STARTED     checkout has begun: cancel the order instead
--   SOLD_OUT          a variant has fewer free units than are wanted besides: detail names it
--   BUYER_LIMIT       held and bought units of the buyer would exceed the limit of the sale
--   ORDER_LIMIT       more units than one order may have
--   UNKNOWN_VARIANT   detail names it
--   NOT_ADMITTED      more is wanted, and the buyer is not inside with the hold's admission any more
--   SALE_CLOSED       more is wanted, and the sale is not selling
--   KEY_REUSED        the idempotency key was used for another request
-- Cost: O(lines + units) and O(log holds) an item.
-- Invariant: free + held + sold = quantity. A refusal leaves units, hold and deadline as they were;
-- no change moves a deadline. What goes back is only ever what is held: never below zero.
-- Repeat: the same answer with a key, whose first answer is kept as for reserve; without one the same
-- answer where quantities are those to have, since they are there already; RELEASED becomes NOTHING_HELD.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'mode', 'closes_ms', 'order_limit', 'buyer_limit',
  'idem_ttl_s', 'buffer_percent')
if not cfg[1] then return cmsgpack.pack({ 'NO_SALE' }) end
local mode, closes = cfg[1], tonumber(cfg[2] or '0')
local selling = mode == 'open' or mode == 'paused' or mode == 'draining'
if closes > 0 and now >= closes then selling = false end
local order_limit, buyer_limit = tonumber(cfg[3]), tonumber(cfg[4])
local idem_ttl, buffer = tonumber(cfg[5] or '900'), tonumber(cfg[6] or '0')
local period = math.floor(now / 1000 / idem_ttl)
local answers_now = KEYS[10] .. ':' .. period
local answers_before = KEYS[10] .. ':' .. (period - 1)

-- Free units that may be taken, the safety buffer left alone (H9); nil for a variant nobody knows.
local function available(variant)
  local f = redis.call('HMGET', KEYS[2], variant .. ':n', variant .. ':l', variant .. ':q')
  if not f[1] then return nil end
  return tonumber(f[2]) - tonumber(f[1]) + 1 + redis.call('LLEN', KEYS[3] .. ':' .. variant)
    - math.ceil(tonumber(f[3]) * buffer / 100)
end

local function take(variant, quantity, serials)
  local back = redis.call('LPOP', KEYS[3] .. ':' .. variant, quantity) or {}
  for _, serial in ipairs(back) do serials[#serials + 1] = tonumber(serial) end
  local fresh = quantity - #back
  if fresh > 0 then
    local after = redis.call('HINCRBY', KEYS[2], variant .. ':n', fresh)
    for serial = after - fresh, after - 1 do serials[#serials + 1] = serial end
  end
  redis.call('HINCRBY', KEYS[2], variant .. ':h', quantity)
end

local function give_back(variant, quantity, serials)
  local back = {}
  for _ = 1, quantity do back[#back + 1] = table.remove(serials) end
  redis.call('RPUSH', KEYS[3] .. ':' .. variant, unpack(back))
  redis.call('HINCRBY', KEYS[2], variant .. ':h', -quantity)
end

local function inside(buyer, admission)
  local lease = tonumber(redis.call('ZSCORE', KEYS[7], buyer) or '0')
  local issued = redis.call('HGET', KEYS[8], buyer)
  return lease > now and issued and string.match(issued, '^(.*):%d+$') == admission
end

local function count(buyer, units)
  if units == 0 then return end
  if redis.call('HINCRBY', KEYS[6], buyer, units) <= 0 then redis.call('HDEL', KEYS[6], buyer) end
end

local function end_hold(buyer, hold_id, hold)
  redis.call('HDEL', KEYS[4], hold_id)
  redis.call('ZREM', KEYS[5], hold_id)
  if redis.call('HGET', KEYS[9], buyer) == hold_id then redis.call('HDEL', KEYS[9], buyer) end
  for _, mark in ipairs(hold[6] or {}) do
    if redis.call('HGET', KEYS[11], mark) == hold_id then redis.call('HDEL', KEYS[11], mark) end
  end
end

-- What the hold has and what it shall have: by variant, and the variants in order.
local function wanted_of(hold, lines)
  local has, wanted, order = {}, {}, {}
  for _, line in ipairs(hold[5]) do
    has[line[1]] = line[2]
    wanted[line[1]] = #line[2]
    order[#order + 1] = line[1]
  end
  for i = 1, #lines, 2 do
    local variant, quantity = lines[i], lines[i + 1]
    if quantity < 0 then
      quantity = math.max(0, (wanted[variant] or 0) + quantity)
    end
    if not wanted[variant] and quantity > 0 then order[#order + 1] = variant end
    if wanted[variant] or quantity > 0 then wanted[variant] = quantity end
  end
  return has, wanted, order
end

local function refusal(buyer, hold, total, before, more)
  if not selling then return { 'SALE_CLOSED', 0, {}, 0, '' } end
  if not inside(buyer, hold[2]) then return { 'NOT_ADMITTED', 0, {}, 0, '' } end
  if total > before then
    if total > order_limit then return { 'ORDER_LIMIT', 0, {}, 0, '' } end
    local owned = tonumber(redis.call('HGET', KEYS[6], buyer) or '0')
    if owned + total - before > buyer_limit then return { 'BUYER_LIMIT', 0, {}, 0, '' } end
  end
  for _, each in ipairs(more) do
    local free = available(each[1])
    if not free then return { 'UNKNOWN_VARIANT', 0, {}, 0, each[1] } end
    if free < each[2] then return { 'SOLD_OUT', 0, {}, 0, each[1] } end
  end
end

local function decide(buyer, hold_id, hold, lines)
  local has, wanted, order = wanted_of(hold, lines)
  local total, before, more, less = 0, 0, {}, {}
  for _, variant in ipairs(order) do
    local had = has[variant] and #has[variant] or 0
    total, before = total + wanted[variant], before + had
    if wanted[variant] > had then more[#more + 1] = { variant, wanted[variant] - had } end
    if wanted[variant] < had then less[#less + 1] = { variant, had - wanted[variant] } end
  end
  if #more > 0 then
    local refused = refusal(buyer, hold, total, before, more)
    if refused then return refused end
  end
  local freed = 0
  for _, each in ipairs(less) do
    give_back(each[1], each[2], has[each[1]])
    freed = freed + each[2]
  end
  for _, each in ipairs(more) do
    has[each[1]] = has[each[1]] or {}
    take(each[1], each[2], has[each[1]])
  end
  count(buyer, total - before)
  if total == 0 then
    end_hold(buyer, hold_id, hold)
    return { 'RELEASED', 0, {}, freed, '' }
  end
  local now_has = {}
  for _, variant in ipairs(order) do
    if wanted[variant] > 0 then now_has[#now_has + 1] = { variant, has[variant] } end
  end
  hold[5] = now_has
  if #more + #less > 0 then redis.call('HSET', KEYS[4], hold_id, cmsgpack.pack(hold)) end
  return { 'CHANGED', hold[3], now_has, freed, '' }
end

local function answered_before(name)
  local answer = redis.call('HGET', answers_now, name) or redis.call('HGET', answers_before, name)
  return answer and cmsgpack.unpack(answer)
end

local function ask(buyer, hold_id, key, fingerprint, lines)
  local name = buyer .. ':' .. key
  local before = key ~= '' and answered_before(name)
  if before then
    if before[1] ~= fingerprint then return { 'KEY_REUSED', 0, {}, 0, '' } end
    return before[2]
  end
  local packed = redis.call('HGET', KEYS[4], hold_id)
  local hold = packed and cmsgpack.unpack(packed)
  if not hold or hold[1] ~= buyer then return { 'NOTHING_HELD', 0, {}, 0, '' } end
  if hold[4] == 1 then return { 'ORDER_STARTED', 0, {}, 0, '' } end
  if hold[3] <= now then return { 'EXPIRED', 0, {}, 0, '' } end
  local outcome = decide(buyer, hold_id, hold, lines)
  -- Who was outside may be inside when they repeat it; every other answer stays the first one.
  if key ~= '' and outcome[1] ~= 'NOT_ADMITTED' then
    redis.call('HSET', answers_now, name, cmsgpack.pack({ fingerprint, outcome }))
    redis.call('EXPIRE', answers_now, 2 * idem_ttl)
  end
  return outcome
end

local outcomes = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  outcomes[i] = ask(item[1], item[2], item[3], item[4], item[5])
end
return cmsgpack.pack({ 'OK', outcomes })
