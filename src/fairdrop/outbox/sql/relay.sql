-- name: lock_relay
-- One relay at a time: two of them could publish an aggregate's events out of order.
SELECT pg_try_advisory_xact_lock(hashtextextended('fairdrop.relay', 0));

-- name: take_events
-- The oldest events, which are gone when the caller's transaction commits. Whatever is committed is
-- found, however late: there is no position that a slow transaction could fall behind (case 27).
DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox ORDER BY seq LIMIT $1)
RETURNING seq, id, aggregateid, type, payload, created_at;
