-- name: queues
-- What waits in the database, each from a partial index; the outbox is counted up to a bound.
SELECT
    (SELECT count(*) FROM webhook_inbox WHERE due_at IS NOT NULL) AS inbox,
    (SELECT COALESCE(extract(epoch FROM clock_timestamp() - min(received_at)), 0)::double precision
        FROM webhook_inbox WHERE due_at IS NOT NULL) AS inbox_oldest_s,
    (SELECT count(*) FROM (SELECT FROM outbox LIMIT 100000) AS o) AS outbox,
    (SELECT count(*) FROM refunds WHERE state = 'PENDING') AS refunds,
    (SELECT count(*) FROM payments WHERE next_check_at IS NOT NULL) AS payments;
