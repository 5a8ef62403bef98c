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
-- Holds and answers are put together from packed pieces: what is in several of them is packed once, and
-- fewer tables and strings are made, which is what the rest of a script's time goes into.
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
local COLON = string.byte(':')

-- Pieces of msgpack: the header of an array, and of a text by its length.
local pack = cmsgpack.pack
local function array(n)
  if n < 16 then return string.char(144 + n) end
  return string.char(220, math.floor(n / 256), n % 256)
end
local heads = {}
local function head(text)
  local n = #text
  local known = heads[n]
  if known then return known end
  if n < 32 then
    known = string.char(160 + n)
  else
    known = string.char(218, math.floor(n / 256), n % 256)
  end
  heads[n] = known
  return known
end
local PAIR, HOLD, HOLD_WITH_MARKS = array(2), array(5), array(6)
local RESERVED = array(4) .. pack('RESERVED')
local deadline = now + hold_ttl
local packed_deadline = pack(deadline)

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
  local serials, from_returned = {}, 0
  if s.returned > 0 then
    from_returned = math.min(quantity, s.returned)
    for i, serial in ipairs(redis.call('LPOP', KEYS[3] .. ':' .. variant, from_returned)) do
      serials[i] = tonumber(serial)
    end
    s.returned = s.returned - from_returned
  end
  for i = from_returned + 1, quantity do
    serials[i] = s.next
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

-- Variants and quantities in turn, each variant once: an order has few of them.
local function summed(lines)
  local wanted = {}
  for i = 1, #lines, 2 do
    local w = 1
    while wanted[w] and wanted[w] ~= lines[i] do w = w + 2 end
    wanted[w], wanted[w + 1] = lines[i], (wanted[w + 1] or 0) + lines[i + 1]
  end
  return wanted
end

-- All of these return their outcome packed.
local function decide(buyer, at, admission, hold_id, lines, marks)
  if not selling and admission then return pack({ 'SALE_CLOSED' }) end
  local total = 0
  for i = 2, #lines, 2 do
    if lines[i] < 1 then return pack({ 'ORDER_LIMIT' }) end
    total = total + lines[i]
  end
  local wanted = #lines > 2 and summed(lines) or lines
  if admission then
    if total > order_limit then return pack({ 'ORDER_LIMIT' }) end
    if owned[at] + total > buyer_limit then return pack({ 'BUYER_LIMIT' }) end
    if reserves_already(marks) then return pack({ 'PERSON_LIMIT' }) end
  end
  for w = 1, #wanted, 2 do
    local s = stock_of(wanted[w])
    if not s then return pack({ 'UNKNOWN_VARIANT', false, 0, {}, wanted[w] }) end
    if s.last - s.next + 1 + s.returned - s.kept < wanted[w + 1] then
      return pack({ 'SOLD_OUT', false, 0, {}, wanted[w] })
    end
  end
  local units = array(#wanted / 2)
  for w = 1, #wanted, 2 do
    local variant = wanted[w]
    units = units .. PAIR .. head(variant) .. variant .. pack(take(variant, wanted[w + 1]))
  end
  local hold
  if admission and #marks == 0 then
    hold = HOLD .. head(buyer) .. buyer .. head(admission) .. admission .. packed_deadline .. '\0'
      .. units
  else
    hold = pack(buyer, admission, deadline, admission and 0 or 1) .. units
    hold = #marks > 0 and HOLD_WITH_MARKS .. hold .. pack(marks) or HOLD .. hold
    for _, mark in ipairs(marks) do redis.call('HSET', KEYS[11], mark, hold_id) end
  end
  add(new_holds, hold_id, hold)
  add(new_due, deadline, hold_id)
  owned[at] = owned[at] + total
  changed_buyers[buyer] = at
  if admission then
    held[at] = hold_id
    add(new_holding, buyer, hold_id)
  end
  return RESERVED .. head(hold_id) .. hold_id .. packed_deadline .. units
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
    return pack({ 'REPLAYED', hold_id, hold[3], hold[5] })
  end
  return decide(buyer, at, false, hold_id, lines, no_marks)
end

local function ask(i, at, item)
  local buyer, admission, key = item[1], item[2], keys[i]
  local before = made[key] or answers[i]
  if before then
    before = cmsgpack.unpack(before)
    if before[1] ~= item[5] then return pack({ 'KEY_REUSED' }) end
    if before[2][1] == 'RESERVED' then before[2][1] = 'REPLAYED' end
    return pack(before[2])
  end
  local lease, current = leases[at], issued[at]
  if not lease or not current or tonumber(lease) <= now then return pack({ 'NOT_ADMITTED' }) end
  -- What is kept is the admission, a colon and a number.
  local length = #admission
  if string.sub(current, 1, length) ~= admission or string.byte(current, length + 1) ~= COLON then
    return pack({ 'OTHER_ADMISSION' })
  end
  local holding = held[at]
  if holding == '' then return pack({ 'NOT_ADMITTED' }) end
  local hold = holding and hold_of(holding)
  if hold and hold[2] == admission and (hold[4] == 1 or hold[3] > now) then
    return pack({ 'ALREADY_RESERVED', holding, hold[3], hold[5] })
  end
  if hold and hold[4] == 0 and hold[3] <= now then give_back(buyer, at, holding, hold) end
  local outcome = decide(buyer, at, admission, item[3], item[6], item[7] or no_marks)
  local answer = PAIR .. head(item[5]) .. item[5] .. outcome
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
return PAIR .. pack('OK') .. array(#outcomes) .. table.concat(outcomes)
