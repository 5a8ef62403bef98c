-- leave: end a place, wherever it stands; the place inside is free at once (W9, W13).
--
-- KEYS: cfg ctr line called active missed place adm admhold revoked entrant
-- ARGV: now_ms (0 = the store's clock), msgpack [[visitor, admission or nil, completed], ...]
--   with an admission id, only that admission is ended (a newer one of the same visitor stays)
-- REPLY: msgpack [status, outcomes]
-- Status:
--   OK        the outcomes follow, one a visitor, in order
--   NO_SALE   the store does not hold this sale
-- Outcomes:
--   LEFT        the place is gone; counted as done when completed, else as left
--   NOT_THERE   there was no such place; nothing changed
-- Cost: O(log n) a visitor.
-- Invariant: each place given out ends exactly once, in left or in done. An admission that ends before
-- its lease is in the list of revoked tokens until the token has expired by itself (W12). Who leaves the
-- lobby keeps the entry, marked: it stays in the list that is drawn, and its place is left empty.
-- Repeat: LEFT becomes NOT_THERE; nothing changes.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if redis.call('EXISTS', KEYS[1]) == 0 then return cmsgpack.pack({ 'NO_SALE' }) end
local outcomes, gone_away, revoked, done, left = {}, {}, {}, 0, 0
local lobby = tonumber(redis.call('HGET', KEYS[2], 'lobby') or '0')
for i, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local visitor, admission, completed = item[1], item[2], item[3]
  local gone = 0
  local held = redis.call('HGET', KEYS[8], visitor)
  local id = held and string.match(held, '^(.*):%d+$')
  local lease = id and tonumber(redis.call('ZSCORE', KEYS[5], visitor) or '0') or 0
  if admission then
    if id == admission then gone = redis.call('ZREM', KEYS[5], visitor) end
  else
    gone = redis.call('ZREM', KEYS[3], visitor) + redis.call('ZREM', KEYS[4], visitor)
      + redis.call('ZREM', KEYS[5], visitor) + redis.call('ZREM', KEYS[6], visitor)
  end
  if gone == 0 and not admission and lobby > 0 then
    local entry = redis.call('HGET', KEYS[11], visitor)
    if entry and string.sub(entry, 1, 1) ~= '!' then
      redis.call('HSET', KEYS[11], visitor, '!' .. entry)
      redis.call('HINCRBY', KEYS[2], 'lobby', -1)
      lobby = lobby - 1
      gone = 1
    end
  end
  if gone > 0 then
    gone_away[#gone_away + 1] = visitor
    if lease > now then
      revoked[#revoked + 1] = lease
      revoked[#revoked + 1] = id
    end
    if completed then done = done + 1 else left = left + 1 end
    outcomes[i] = 'LEFT'
  else
    outcomes[i] = 'NOT_THERE'
  end
end
if #gone_away > 0 then
  -- Each structure is written once for the whole batch: a command costs more than what it carries.
  redis.call('HDEL', KEYS[7], unpack(gone_away))
  redis.call('HDEL', KEYS[8], unpack(gone_away))
  redis.call('HDEL', KEYS[9], unpack(gone_away))
  if #revoked > 0 then
    redis.call('ZADD', KEYS[10], unpack(revoked))
    -- Twice what was added, so that the list shrinks in bounded steps also when nobody reads it.
    local over = redis.call('ZRANGEBYSCORE', KEYS[10], '-inf', now, 'LIMIT', 0, #revoked)
    if #over > 0 then redis.call('ZREM', KEYS[10], unpack(over)) end
  end
  if done > 0 then redis.call('HINCRBY', KEYS[2], 'done', done) end
  if left > 0 then redis.call('HINCRBY', KEYS[2], 'left', left) end
end
return cmsgpack.pack({ 'OK', outcomes })
