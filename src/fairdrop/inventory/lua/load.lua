-- load: bring a sale's configuration and stock into the store, or bring them up to date (H8, H9, W17).
--
-- KEYS: cfg stk ret holds due buyer ctr verified
-- ARGV: now_ms (0 = the store's clock), msgpack
--   [version, {field: value, ...}, [[variant, quantity, last serial, next serial, sold, [returned serial, ...]], ...],
--    [[hold id, buyer, admission or false, deadline_ms, [[variant, [serial, ...]], ...],
--      [mark, ...]], ...], {buyer: units bought},
--    [position that the line goes on behind, position served last, grace_ms]]
--   next serial, sold and returned count only when the variant is not in the store yet, holds and
--   bought only when the sale is not, and the line's position and grace likewise: for so long nobody
--   is called, while those who were in a lost line come back to their places (W15)
-- REPLY: msgpack [status, version]
-- Status:
--   LOADED     the sale was not there: all of it was written
--   UPDATED    configuration (of a newer version) and stock increases were applied
--   CURRENT    the store has this version or a newer one; only missing stock was added
-- Cost: O(variants + holds + returned serials).
-- Invariant: free + held + sold = quantity. A repeated or late call changes nothing; the store's own
-- mode is kept unless the version is newer, and never goes back on its way to the opening (scheduled,
-- lobby, drawing): there the clock may be ahead of what the database has heard. Last serials only grow.
-- Repeat: LOADED and UPDATED become CURRENT; nothing changes.
local args = cmsgpack.unpack(ARGV[2])
local version, fields, variants = args[1], args[2], args[3]
local function add(v)
  local id = v[1]
  redis.call('HSET', KEYS[2], id .. ':q', v[2], id .. ':l', v[3], id .. ':n', v[4], id .. ':h', 0,
    id .. ':s', v[5])
  redis.call('DEL', KEYS[3] .. ':' .. id)
  for _, serial in ipairs(v[6]) do redis.call('RPUSH', KEYS[3] .. ':' .. id, serial) end
end
local have = tonumber(redis.call('HGET', KEYS[1], 'version') or 'x')
if not have then
  for _, v in ipairs(variants) do add(v) end
  for buyer, units in pairs(args[5]) do redis.call('HINCRBY', KEYS[6], buyer, units) end
  for _, h in ipairs(args[4]) do
    local hold, marks = { h[2], h[3], h[4], 1, h[5] }, h[6] or {}
    if #marks > 0 then
      hold[6] = marks
      for _, mark in ipairs(marks) do redis.call('HSET', KEYS[8], mark, h[1]) end
    end
    redis.call('HSET', KEYS[4], h[1], cmsgpack.pack(hold))
    redis.call('ZADD', KEYS[5], h[4], h[1])
    local units = 0
    for _, line in ipairs(h[5]) do
      redis.call('HINCRBY', KEYS[2], line[1] .. ':h', #line[2])
      units = units + #line[2]
    end
    redis.call('HINCRBY', KEYS[6], h[2], units)
  end
  local line = args[6] or { 0, 0, 0 }
  redis.call('HSET', KEYS[7], 'seq', line[1], 'served', line[2], 'lost_tail', line[1])
  if line[3] > 0 then
    local now = tonumber(ARGV[1])
    if now == 0 then
      local time = redis.call('TIME')
      now = time[1] * 1000 + math.floor(time[2] / 1000)
    end
    redis.call('HSET', KEYS[7], 'restoring_until', now + line[3])
  end
  -- The line is capped from the first arrival on, also before the first tick (W16).
  local quantity, sold = 0, 0
  for _, v in ipairs(variants) do
    quantity = quantity + v[2] - math.min(v[2] - v[5], math.ceil(v[2] * (fields.buffer_percent or 0) / 100))
    sold = sold + v[5]
  end
  if quantity > 0 and (fields.line_cap_milli or 0) > 0 then
    redis.call('HSET', KEYS[7], 'line_cap', math.floor(fields.line_cap_milli * (quantity - sold) / 1000))
  end
end
if not have or version > have then
  local way = { scheduled = 1, lobby = 2, drawing = 3 }
  local mode = redis.call('HGET', KEYS[1], 'mode')
  if mode and fields.mode and (way[fields.mode] or 4) < (way[mode] or 4) then fields.mode = mode end
  for field, value in pairs(fields) do redis.call('HSET', KEYS[1], field, value) end
  redis.call('HSET', KEYS[1], 'version', version)
end
if have then
  for _, v in ipairs(variants) do
    local id, last = v[1], v[3]
    local before = tonumber(redis.call('HGET', KEYS[2], id .. ':l') or 'x')
    if not before then
      add(v)
    elseif last > before then
      redis.call('HSET', KEYS[2], id .. ':l', last)
      redis.call('HINCRBY', KEYS[2], id .. ':q', last - before)
    end
  end
end
if not have then return cmsgpack.pack({ 'LOADED', version }) end
return cmsgpack.pack({ version > have and 'UPDATED' or 'CURRENT', math.max(version, have) })
