-- name: queues
-- What waits in the database, each from a small table or index; the outbox is counted up to a bound.
SELECT
    (SELECT count(*) FROM webhook_due) AS inbox,
    (SELECT COALESCE(extract(epoch FROM clock_timestamp() - min(received_at)), 0)::double precision
        FROM webhook_due d JOIN webhook_inbox w ON w.id = d.id) AS inbox_oldest_s,
    (SELECT count(*) FROM (SELECT FROM outbox LIMIT 100000) AS o) AS outbox,
    (SELECT count(*) FROM refunds WHERE state = 'PENDING') AS refunds,
    (SELECT count(*) FROM order_timers WHERE kind = 'PAYMENT') AS payments,
    (SELECT count(*) FROM order_mails WHERE state = 'FAILED') AS mails_failed;
