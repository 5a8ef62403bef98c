-- reserve: check and take, all or nothing (H1, H2, H3, H6, W13).
--
-- KEYS: cfg stk ret holds due buyer active adm admhold idem
-- ARGV: now_ms (0 = the store's clock), msgpack [item, ...]
--   an item is [buyer, admission or nil, hold id, idempotency key, fingerprint, [variant, quantity, ...]]
--   without an admission it is the shop itself that takes, for a buyer whose late payment is in
--   (O7): no admission, no limit and no idempotency key is asked, the hold id makes it idempotent,
--   and the hold is in the checkout phase from the start
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
--   ORDER_LIMIT         more units than one order may have
--   UNKNOWN_VARIANT     detail names it
--   NOT_ADMITTED        the buyer is not inside, or the lease is over
--   OTHER_ADMISSION     the buyer is inside with another admission than the one shown
--   SALE_CLOSED         the sale is not selling
--   KEY_REUSED          the idempotency key was used for another request
-- Cost: O(lines + units) and O(log holds) an item; each variant is read and written once a batch.
-- Invariant: free + held + sold = quantity, for every variant, before and after. The sum over the
-- lines of one variant counts. A serial is in exactly one place: never issued, returned, held, sold.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cfg = redis.call('HMGET', KEYS[1], 'mode', 'closes_ms', 'hold_ttl_ms', 'order_limit',
  'buyer_limit', 'idem_ttl_s')
if not cfg[1] then return cmsgpack.pack({ 'NO_SALE' }) end
local mode, closes = cfg[1], tonumber(cfg[2] or '0')
local selling = mode == 'open' or mode == 'paused' or mode == 'draining'
if closes > 0 and now >= closes then selling = false end
local hold_ttl, order_limit, buyer_limit = tonumber(cfg[3]), tonumber(cfg[4]), tonumber(cfg[5])
local idem_ttl = cfg[6] or '900'

local stock = {}
local function stock_of(variant)
  local s = stock[variant]
  if s == nil then
    local f = redis.call('HMGET', KEYS[2], variant .. ':n', variant .. ':l', variant .. ':h')
    s = f[1] and {
      next = tonumber(f[1]), last = tonumber(f[2]), held = tonumber(f[3] or '0'),
      returned = redis.call('LLEN', KEYS[3] .. ':' .. variant),
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

local function decide(buyer, admission, hold_id, lines)
  if not selling and admission then return { 'SALE_CLOSED' } end
  local wanted, order, total = {}, {}, 0
  for i = 1, #lines, 2 do
    local variant, quantity = lines[i], lines[i + 1]
    if not wanted[variant] then
      wanted[variant] = 0
      order[#order + 1] = variant
    end
    wanted[variant] = wanted[variant] + quantity
    total = total + quantity
  end
  local owned = tonumber(redis.call('HGET', KEYS[6], buyer) or '0')
  if admission then
    if total > order_limit then return { 'ORDER_LIMIT' } end
    if owned + total > buyer_limit then return { 'BUYER_LIMIT' } end
  end
  for _, variant in ipairs(order) do
    local s = stock_of(variant)
    if not s then return { 'UNKNOWN_VARIANT', false, 0, {}, variant } end
    if s.last - s.next + 1 + s.returned < wanted[variant] then
      return { 'SOLD_OUT', false, 0, {}, variant }
    end
  end
  local taken = {}
  for i, variant in ipairs(order) do
    taken[i] = { variant, take(variant, wanted[variant]) }
  end
  local deadline = now + hold_ttl
  redis.call('HSET', KEYS[4], hold_id,
    cmsgpack.pack({ buyer, admission, deadline, admission and 0 or 1, taken }))
  redis.call('ZADD', KEYS[5], deadline, hold_id)
  redis.call('HSET', KEYS[6], buyer, owned + total)
  if admission then redis.call('HSET', KEYS[9], buyer, hold_id) end
  return { 'RESERVED', hold_id, deadline, taken }
end

local outcomes = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local buyer, admission, hold_id, key, fingerprint = item[1], item[2], item[3], item[4], item[5]
  local outcome
  if not admission then
    local hold = redis.call('HGET', KEYS[4], hold_id)
    if hold then
      hold = cmsgpack.unpack(hold)
      outcome = { 'REPLAYED', hold_id, hold[3], hold[5] }
    else
      outcome = decide(buyer, false, hold_id, item[6])
    end
  else
    local idem = KEYS[10] .. ':' .. buyer .. ':' .. key
    local before = redis.call('GET', idem)
    if before then
      before = cmsgpack.unpack(before)
      if before[1] ~= fingerprint then
        outcome = { 'KEY_REUSED' }
      else
        outcome = before[2]
        if outcome[1] == 'RESERVED' then outcome[1] = 'REPLAYED' end
      end
    else
      local lease = tonumber(redis.call('ZSCORE', KEYS[7], buyer) or '0')
      local issued = lease > now and redis.call('HGET', KEYS[8], buyer)
      if not issued then
        outcome = { 'NOT_ADMITTED' }
      elseif string.match(issued, '^(.*):%d+$') ~= admission then
        outcome = { 'OTHER_ADMISSION' }
      else
        local held = redis.call('HGET', KEYS[9], buyer)
        local hold = held and redis.call('HGET', KEYS[4], held)
        hold = hold and cmsgpack.unpack(hold)
        if hold and hold[2] == admission and (hold[4] == 1 or hold[3] > now) then
          outcome = { 'ALREADY_RESERVED', held, hold[3], hold[5] }
        else
          outcome = decide(buyer, admission, hold_id, item[6])
          redis.call('SET', idem, cmsgpack.pack({ fingerprint, outcome }), 'EX', idem_ttl)
        end
      end
    end
  end
  outcomes[i] = outcome
end
local changed = {}
for variant, s in pairs(stock) do
  if s and s.dirty then
    changed[#changed + 1] = variant .. ':n'
    changed[#changed + 1] = s.next
    changed[#changed + 1] = variant .. ':h'
    changed[#changed + 1] = s.held
  end
end
if #changed > 0 then redis.call('HSET', KEYS[2], unpack(changed)) end
return cmsgpack.pack({ 'OK', outcomes })
