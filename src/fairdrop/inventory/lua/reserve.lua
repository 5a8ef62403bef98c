-- reserve: check and take, all or nothing (H1, H2, H3, H6, W13).
--
-- KEYS: cfg stk ret holds due buyer active adm admhold idem verified
-- ARGV: now_ms (0 = the store's clock), msgpack [item, ...]
--   an item is [buyer, admission or nil, hold id, idempotency key, fingerprint, [variant, quantity, ...],
--     [mark, ...]]; a mark is the keyed hash of a verified phone or payment method
--   without an admission it is the shop itself that takes, for a buyer whose late payment is in
--   (O7): no admission, no limit and no idempotency key is asked, the hold id makes it idempotent,
--   and the hold is in the checkout phase from the start; asking again renews its deadline
-- REPLY: msgpack [status, outcomes]; an outcome is [code, hold id, deadline_ms, lines, detail]
--   lines are [[variant, [serial, ...]], ...]
-- Status:
--   OK        the outcomes follow, one an item, in order
--   NO_SALE   the store does not hold this sale: nothing is sold (W14)
-- Outcomes:
--   RESERVED            the units are held until the deadline
--   REPLAYED            the same request was answered before with RESERVED; that answer again
--   ALREADY_RESERVED    this admission holds units already: its hold id
--   SOLD_OUT            a variant has fewer free units than asked: detail names it; nothing was taken
--   BUYER_LIMIT         held and bought units of the buyer would exceed the limit of the sale
--   ORDER_LIMIT         more units than one order may have, or less than one in a line
--   PERSON_LIMIT        a phone or payment method given has an active reservation in this sale already
--   UNKNOWN_VARIANT     detail names it
--   NOT_ADMITTED        the buyer is not inside, the lease is over, or its order is confirmed
--   OTHER_ADMISSION     the buyer is inside with another admission than the one shown
--   SALE_CLOSED         the sale is not selling
--   KEY_REUSED          the idempotency key was used for another request
-- Cost: O(lines + units) and O(log holds) an item. What items need is read for the whole batch at
-- once and written for the whole batch at once, since a command costs a script more than its work.
-- Invariant: free + held + sold = quantity, for every variant, before and after. The sum over the
-- lines of one variant counts. A serial is in exactly one place: never issued, returned, held, sold.
-- The safety buffer of a variant, a share of its quantity, is never taken (H9).
-- Repeat: RESERVED becomes REPLAYED, with the same hold; every other answer stays the same.
-- Answers by idempotency key are kept in hashes of one period each, which end as a whole; the
-- present and the last one are looked at, so an answer is kept for one period at least, two at most.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'mode', 'closes_ms', 'hold_ttl_ms', 'order_limit',
  'buyer_limit', 'idem_ttl_s', 'buffer_percent')
if not cfg[1] then return cmsgpack.pack({ 'NO_SALE' }) end
local mode, closes = cfg[1], tonumber(cfg[2] or '0')
local selling = mode == 'open' or mode == 'paused' or mode == 'draining'
if closes > 0 and now >= closes then selling = false end
local hold_ttl, order_limit, buyer_limit = tonumber(cfg[3]), tonumber(cfg[4]), tonumber(cfg[5])
local idem_ttl, buffer = tonumber(cfg[6] or '900'), tonumber(cfg[7] or '0')
local items = cmsgpack.unpack(ARGV[2])
local period = math.floor(now / 1000 / idem_ttl)
local answers_now = KEYS[10] .. ':' .. period
local answers_before = KEYS[10] .. ':' .. (period - 1)

-- What the batch knows of buyers and of answers: read once here, kept current below.
local lease, issued, held, owned, answers = {}, {}, {}, {}, {}
do
  local buyers, keys = {}, {}
  for i, item in ipairs(items) do
    buyers[i] = item[1]
    keys[i] = item[1] .. ':' .. item[4]
  end
  local leases = redis.call('ZMSCORE', KEYS[7], unpack(buyers))
  local admissions = redis.call('HMGET', KEYS[8], unpack(buyers))
  local holding = redis.call('HMGET', KEYS[9], unpack(buyers))
  local counts = redis.call('HMGET', KEYS[6], unpack(buyers))
  local fresh = redis.call('HMGET', answers_now, unpack(keys))
  local old = redis.call('HMGET', answers_before, unpack(keys))
  for i, buyer in ipairs(buyers) do
    lease[buyer] = tonumber(leases[i] or '0')
    issued[buyer] = admissions[i]
    held[buyer] = holding[i]
    owned[buyer] = tonumber(counts[i] or '0')
    answers[keys[i]] = fresh[i] or old[i]
  end
end

-- What the batch changes, written at its end: arguments of one command each.
local new_holds, new_due, new_holding, new_answers, changed_buyers = {}, {}, {}, {}, {}
local function add(list, a, b)
  list[#list + 1] = a
  list[#list + 1] = b
end

local stock = {}
local function stock_of(variant)
  local s = stock[variant]
  if s == nil then
    local f = redis.call('HMGET', KEYS[2], variant .. ':n', variant .. ':l', variant .. ':h',
      variant .. ':q')
    s = f[1] and {
      next = tonumber(f[1]), last = tonumber(f[2]), held = tonumber(f[3] or '0'),
      returned = redis.call('LLEN', KEYS[3] .. ':' .. variant),
      kept = math.ceil(tonumber(f[4]) * buffer / 100),
    } or false
    stock[variant] = s
  end
  return s
end

local function take(variant, quantity)
  local s = stock[variant]
  local serials = {}
  local from_returned = math.min(quantity, s.returned)
  if from_returned > 0 then
    for i, serial in ipairs(redis.call('LPOP', KEYS[3] .. ':' .. variant, from_returned)) do
      serials[i] = tonumber(serial)
    end
    s.returned = s.returned - from_returned
  end
  for _ = from_returned + 1, quantity do
    serials[#serials + 1] = s.next
    s.next = s.next + 1
  end
  s.held = s.held + quantity
  s.dirty = true
  return serials
end

-- The buyer's own hold is over although no sweep has met it (H4): as if the sweep had run.
local function give_back(buyer, hold_id, hold)
  for _, line in ipairs(hold[5]) do
    local s = stock_of(line[1])
    redis.call('RPUSH', KEYS[3] .. ':' .. line[1], unpack(line[2]))
    s.returned = s.returned + #line[2]
    s.held = s.held - #line[2]
    s.dirty = true
    owned[buyer] = math.max(0, owned[buyer] - #line[2])
  end
  changed_buyers[buyer] = true
  redis.call('HDEL', KEYS[4], hold_id)
  redis.call('ZREM', KEYS[5], hold_id)
  redis.call('HDEL', KEYS[9], buyer)
  held[buyer] = false
  for _, mark in ipairs(hold[6] or {}) do
    if redis.call('HGET', KEYS[11], mark) == hold_id then redis.call('HDEL', KEYS[11], mark) end
  end
end

local function hold_of(hold_id)
  for i = 1, #new_holds, 2 do
    if new_holds[i] == hold_id then return cmsgpack.unpack(new_holds[i + 1]) end
  end
  local hold = redis.call('HGET', KEYS[4], hold_id)
  return hold and cmsgpack.unpack(hold)
end

-- Whether a phone or payment method has a reservation that is not over (H6).
local function reserves_already(marks)
  for _, mark in ipairs(marks) do
    local other = redis.call('HGET', KEYS[11], mark)
    local hold = other and hold_of(other)
    if hold and (hold[4] == 1 or hold[3] > now) then return true end
  end
  return false
end

local function decide(buyer, admission, hold_id, lines, marks)
  if not selling and admission then return { 'SALE_CLOSED' } end
  local wanted, order, total = {}, {}, 0
  for i = 1, #lines, 2 do
    local variant, quantity = lines[i], lines[i + 1]
    if quantity < 1 then return { 'ORDER_LIMIT' } end
    if not wanted[variant] then
      wanted[variant] = 0
      order[#order + 1] = variant
    end
    wanted[variant] = wanted[variant] + quantity
    total = total + quantity
  end
  if admission then
    if total > order_limit then return { 'ORDER_LIMIT' } end
    if owned[buyer] + total > buyer_limit then return { 'BUYER_LIMIT' } end
    if reserves_already(marks) then return { 'PERSON_LIMIT' } end
  end
  for _, variant in ipairs(order) do
    local s = stock_of(variant)
    if not s then return { 'UNKNOWN_VARIANT', false, 0, {}, variant } end
    if s.last - s.next + 1 + s.returned - s.kept < wanted[variant] then
      return { 'SOLD_OUT', false, 0, {}, variant }
    end
  end
  local taken = {}
  for i, variant in ipairs(order) do
    taken[i] = { variant, take(variant, wanted[variant]) }
  end
  local deadline = now + hold_ttl
  local hold = { buyer, admission, deadline, admission and 0 or 1, taken }
  if #marks > 0 then
    hold[6] = marks
    for _, mark in ipairs(marks) do redis.call('HSET', KEYS[11], mark, hold_id) end
  end
  add(new_holds, hold_id, cmsgpack.pack(hold))
  add(new_due, deadline, hold_id)
  owned[buyer] = owned[buyer] + total
  changed_buyers[buyer] = true
  if admission then
    held[buyer] = hold_id
    add(new_holding, buyer, hold_id)
  end
  return { 'RESERVED', hold_id, deadline, taken }
end

local function late(buyer, hold_id, lines)
  local hold = hold_of(hold_id)
  if hold then
    -- Whoever asks again is about to confirm it: the sweep must not look at it in the meantime.
    if now + hold_ttl > hold[3] then
      hold[3] = now + hold_ttl
      redis.call('HSET', KEYS[4], hold_id, cmsgpack.pack(hold))
      redis.call('ZADD', KEYS[5], hold[3], hold_id)
    end
    return { 'REPLAYED', hold_id, hold[3], hold[5] }
  end
  return decide(buyer, false, hold_id, lines, {})
end

local function ask(buyer, admission, hold_id, key, fingerprint, lines, marks)
  local before = answers[buyer .. ':' .. key]
  if before then
    before = cmsgpack.unpack(before)
    if before[1] ~= fingerprint then return { 'KEY_REUSED' } end
    if before[2][1] == 'RESERVED' then before[2][1] = 'REPLAYED' end
    return before[2]
  end
  if lease[buyer] <= now or not issued[buyer] then return { 'NOT_ADMITTED' } end
  if string.match(issued[buyer], '^(.*):%d+$') ~= admission then return { 'OTHER_ADMISSION' } end
  local holding = held[buyer]
  if holding == '' then return { 'NOT_ADMITTED' } end
  local hold = holding and hold_of(holding)
  if hold and hold[2] == admission and (hold[4] == 1 or hold[3] > now) then
    return { 'ALREADY_RESERVED', holding, hold[3], hold[5] }
  end
  if hold and hold[4] == 0 and hold[3] <= now then give_back(buyer, holding, hold) end
  local outcome = decide(buyer, admission, hold_id, lines, marks)
  local answer = cmsgpack.pack({ fingerprint, outcome })
  answers[buyer .. ':' .. key] = answer
  add(new_answers, buyer .. ':' .. key, answer)
  return outcome
end

local outcomes = {}
for i, item in ipairs(items) do
  local buyer, admission = item[1], item[2]
  if admission then
    outcomes[i] = ask(buyer, admission, item[3], item[4], item[5], item[6], item[7] or {})
  else
    outcomes[i] = late(buyer, item[3], item[6])
  end
end

local changed = {}
for variant, s in pairs(stock) do
  if s and s.dirty then
    add(changed, variant .. ':n', s.next)
    add(changed, variant .. ':h', s.held)
  end
end
local counts, none = {}, {}
for buyer in pairs(changed_buyers) do
  if owned[buyer] > 0 then add(counts, buyer, owned[buyer]) else none[#none + 1] = buyer end
end
if #changed > 0 then redis.call('HSET', KEYS[2], unpack(changed)) end
if #new_holds > 0 then redis.call('HSET', KEYS[4], unpack(new_holds)) end
if #new_due > 0 then redis.call('ZADD', KEYS[5], unpack(new_due)) end
if #new_holding > 0 then redis.call('HSET', KEYS[9], unpack(new_holding)) end
if #counts > 0 then redis.call('HSET', KEYS[6], unpack(counts)) end
if #none > 0 then redis.call('HDEL', KEYS[6], unpack(none)) end
if #new_answers > 0 then
  redis.call('HSET', answers_now, unpack(new_answers))
  redis.call('EXPIRE', answers_now, 2 * idem_ttl)
end
return cmsgpack.pack({ 'OK', outcomes })
