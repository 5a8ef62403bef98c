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

-- What the batch knows of buyers and of answers: read once here, kept current below. What is known of
-- a buyer who has several items stands at the first of them.
local buyers, keys, first = {}, {}, {}
for i, item in ipairs(items) do
  local buyer = item[1]
  buyers[i] = buyer
  keys[i] = buyer .. ':' .. item[4]
  if not first[buyer] then first[buyer] = i end
end
local leases = redis.call('ZMSCORE', KEYS[7], unpack(buyers))
local issued = redis.call('HMGET', KEYS[8], unpack(buyers))
local held = redis.call('HMGET', KEYS[9], unpack(buyers))
local owned = redis.call('HMGET', KEYS[6], unpack(buyers))
local answers = redis.call('HMGET', answers_now, unpack(keys))
if redis.call('EXISTS', answers_before) == 1 then
  for i, old in ipairs(redis.call('HMGET', answers_before, unpack(keys))) do
    answers[i] = answers[i] or old
  end
end
for i = 1, #items do owned[i] = owned[i] and tonumber(owned[i]) or 0 end

-- What the batch changes, written at its end: arguments of one command each.
local new_holds, new_due, new_holding, new_answers, changed_buyers = {}, {}, {}, {}, {}
local function add(list, a, b)
  local n = #list
  list[n + 1] = a
  list[n + 2] = b
end
local made = {}  -- answers of this batch, by key
local no_marks = {}

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
local function give_back(buyer, at, hold_id, hold)
  for _, line in ipairs(hold[5]) do
    local s = stock_of(line[1])
    redis.call('RPUSH', KEYS[3] .. ':' .. line[1], unpack(line[2]))
    s.returned = s.returned + #line[2]
    s.held = s.held - #line[2]
    s.dirty = true
    owned[at] = math.max(0, owned[at] - #line[2])
  end
  changed_buyers[buyer] = at
  redis.call('HDEL', KEYS[4], hold_id)
  redis.call('ZREM', KEYS[5], hold_id)
  redis.call('HDEL', KEYS[9], buyer)
  held[at] = false
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

local function decide(buyer, at, admission, hold_id, lines, marks)
  if not selling and admission then return { 'SALE_CLOSED' } end
  -- Variants and quantities in turn, each variant once: an order has few of them.
  local wanted, total = {}, 0
  for i = 1, #lines, 2 do
    local variant, quantity = lines[i], lines[i + 1]
    if quantity < 1 then return { 'ORDER_LIMIT' } end
    local w = 1
    while wanted[w] and wanted[w] ~= variant do w = w + 2 end
    wanted[w], wanted[w + 1] = variant, (wanted[w + 1] or 0) + quantity
    total = total + quantity
  end
  if admission then
    if total > order_limit then return { 'ORDER_LIMIT' } end
    if owned[at] + total > buyer_limit then return { 'BUYER_LIMIT' } end
    if reserves_already(marks) then return { 'PERSON_LIMIT' } end
  end
  for w = 1, #wanted, 2 do
    local s = stock_of(wanted[w])
    if not s then return { 'UNKNOWN_VARIANT', false, 0, {}, wanted[w] } end
    if s.last - s.next + 1 + s.returned - s.kept < wanted[w + 1] then
      return { 'SOLD_OUT', false, 0, {}, wanted[w] }
    end
  end
  local taken = {}
  for w = 1, #wanted, 2 do
    taken[#taken + 1] = { wanted[w], take(wanted[w], wanted[w + 1]) }
  end
  local deadline = now + hold_ttl
  local hold = { buyer, admission, deadline, admission and 0 or 1, taken }
  if #marks > 0 then
    hold[6] = marks
    for _, mark in ipairs(marks) do redis.call('HSET', KEYS[11], mark, hold_id) end
  end
  add(new_holds, hold_id, cmsgpack.pack(hold))
  add(new_due, deadline, hold_id)
  owned[at] = owned[at] + total
  changed_buyers[buyer] = at
  if admission then
    held[at] = hold_id
    add(new_holding, buyer, hold_id)
  end
  return { 'RESERVED', hold_id, deadline, taken }
end

local function late(buyer, at, hold_id, lines)
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
  return decide(buyer, at, false, hold_id, lines, no_marks)
end

local function ask(i, at, item)
  local buyer, admission, key = item[1], item[2], keys[i]
  local before = made[key] or answers[i]
  if before then
    before = cmsgpack.unpack(before)
    if before[1] ~= item[5] then return { 'KEY_REUSED' } end
    if before[2][1] == 'RESERVED' then before[2][1] = 'REPLAYED' end
    return before[2]
  end
  local lease, current = leases[at], issued[at]
  if not lease or not current or tonumber(lease) <= now then return { 'NOT_ADMITTED' } end
  -- What is kept is the admission, a colon and a number.
  local colon = #admission + 1
  if string.sub(current, 1, colon - 1) ~= admission or not string.find(current, '^:%d+$', colon) then
    return { 'OTHER_ADMISSION' }
  end
  local holding = held[at]
  if holding == '' then return { 'NOT_ADMITTED' } end
  local hold = holding and hold_of(holding)
  if hold and hold[2] == admission and (hold[4] == 1 or hold[3] > now) then
    return { 'ALREADY_RESERVED', holding, hold[3], hold[5] }
  end
  if hold and hold[4] == 0 and hold[3] <= now then give_back(buyer, at, holding, hold) end
  local outcome = decide(buyer, at, admission, item[3], item[6], item[7] or no_marks)
  local answer = cmsgpack.pack({ item[5], outcome })
  made[key] = answer
  add(new_answers, key, answer)
  return outcome
end

local outcomes = {}
for i, item in ipairs(items) do
  local at = first[item[1]]
  outcomes[i] = item[2] and ask(i, at, item) or late(item[1], at, item[3], item[6])
end

local changed = {}
for variant, s in pairs(stock) do
  if s and s.dirty then
    add(changed, variant .. ':n', s.next)
    add(changed, variant .. ':h', s.held)
  end
end
local counts, none = {}, {}
for buyer, at in pairs(changed_buyers) do
  if owned[at] > 0 then add(counts, buyer, owned[at]) else none[#none + 1] = buyer end
end
if #changed > 0 then redis.call('HSET', KEYS[2], unpack(changed)) end
if #new_holds > 0 then redis.call('HSET', KEYS[4], unpack(new_holds)) end
if #new_due > 0 then redis.call('ZADD', KEYS[5], unpack(new_due)) end
if #new_holding > 0 then redis.call('HSET', KEYS[9], unpack(new_holding)) end
if #counts > 0 then redis.call('HSET', KEYS[6], unpack(counts)) end
if #none > 0 then redis.call('HDEL', KEYS[6], unpack(none)) end
if #new_answers > 0 then
  redis.call('HSET', answers_now, unpack(new_answers))
  -- From its first answer on: it is looked at for a period after its own.
  redis.call('EXPIRE', answers_now, 2 * idem_ttl, 'NX')
end
return cmsgpack.pack({ 'OK', outcomes })
