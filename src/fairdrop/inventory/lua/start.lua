-- start: hand a hold over to its order; from here the order's row decides (H7, O1).
--
-- KEYS: cfg holds verified
-- ARGV: now_ms (0 = the store's clock), msgpack [[hold id, buyer, [mark, ...]], ...]
--   marks are keyed hashes of a phone or payment method that checkout has verified, besides those
--   that the reservation came with
-- REPLY: msgpack [status, outcomes]; an outcome is [code, deadline_ms, admission, lines, marks]
-- Status:
--   OK        the outcomes follow, one an item, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   STARTED        the hold is in the checkout phase: only its order's end gives the units back
--   NO_HOLD        there is no such hold of this buyer
--   EXPIRED        the deadline has passed, although no sweep has run yet (H4)
--   PERSON_LIMIT   a mark has another active reservation in this sale (H6); nothing changed
-- Cost: O(units) an item.
-- Invariant: the phase only goes from 0 (the store decides) to 1 (the order's row decides).
-- Repeat: the same answer.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
-- Whether one of the marks has another reservation that is not over.
local function reserves_already(marks, hold_id)
  for _, mark in ipairs(marks) do
    local other = redis.call('HGET', KEYS[3], mark)
    local hold = other and other ~= hold_id and redis.call('HGET', KEYS[2], other)
    hold = hold and cmsgpack.unpack(hold)
    if hold and (hold[4] == 1 or hold[3] > now) then return true end
  end
  return false
end

-- Adds the marks that the hold has not got; true when there were any.
local function mark_hold(hold, hold_id, marks)
  local has, before = {}, #(hold[6] or {})
  for _, mark in ipairs(hold[6] or {}) do has[mark] = true end
  for _, mark in ipairs(marks) do
    redis.call('HSET', KEYS[3], mark, hold_id)
    if not has[mark] then
      has[mark] = true
      hold[6] = hold[6] or {}
      hold[6][#hold[6] + 1] = mark
    end
  end
  return #(hold[6] or {}) > before
end

local outcomes = {}
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local hold_id, buyer, marks = item[1], item[2], item[3] or {}
  local hold = redis.call('HGET', KEYS[2], hold_id)
  hold = hold and cmsgpack.unpack(hold)
  if not hold or hold[1] ~= buyer then
    outcomes[i] = { 'NO_HOLD' }
  elseif hold[4] == 0 and hold[3] <= now then
    outcomes[i] = { 'EXPIRED' }
  elseif reserves_already(marks, hold_id) then
    outcomes[i] = { 'PERSON_LIMIT' }
  else
    local marked = mark_hold(hold, hold_id, marks)
    if hold[4] == 0 or marked then
      hold[4] = 1
      redis.call('HSET', KEYS[2], hold_id, cmsgpack.pack(hold))
    end
    outcomes[i] = { 'STARTED', hold[3], hold[2], hold[5], hold[6] or {} }
  end
end
return cmsgpack.pack({ 'OK', outcomes })
