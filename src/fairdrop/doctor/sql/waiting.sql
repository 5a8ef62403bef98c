-- name: waiting
-- What waits to be done by itself: how many, how many are past their time by more than a minute (nobody
-- takes them), the age of the oldest, the most tries, and one of the last errors. Each from an index.
SELECT 'webhooks' AS kind, count(*)::integer AS waiting,
    count(*) FILTER (WHERE d.due_at < now() - interval '1 minute')::integer AS left_lying,
    COALESCE(extract(epoch FROM now() - min(w.received_at)), 0)::double precision AS oldest_s,
    COALESCE(max(d.attempts), 0) AS tries, max(w.outcome) AS error
FROM webhook_due d JOIN webhook_inbox w ON w.id = d.id
UNION ALL
SELECT 'refunds', count(*)::integer,
    count(*) FILTER (WHERE next_try_at < now() - interval '1 minute')::integer,
    COALESCE(extract(epoch FROM now() - min(created_at)), 0)::double precision,
    COALESCE(max(attempts), 0), max(last_error)
FROM refunds WHERE state = 'PENDING'
UNION ALL
SELECT 'mails', count(*)::integer,
    count(*) FILTER (WHERE next_try_at < now() - interval '1 minute')::integer,
    COALESCE(extract(epoch FROM now() - min(created_at)), 0)::double precision,
    COALESCE(max(attempts), 0), max(last_error)
FROM order_mails WHERE state = 'PENDING'
UNION ALL
SELECT 'payments', count(*)::integer,
    count(*) FILTER (WHERE at < now() - interval '1 minute')::integer,
    COALESCE(extract(epoch FROM now() - min(at) FILTER (WHERE at < now())), 0)::double precision,
    COALESCE(max(tries), 0), NULL
FROM order_timers WHERE kind = 'PAYMENT'
UNION ALL
SELECT 'deadlines', count(*)::integer,
    count(*) FILTER (WHERE at < now() - interval '1 minute')::integer,
    COALESCE(extract(epoch FROM now() - min(at) FILTER (WHERE at < now())), 0)::double precision,
    0, NULL
FROM order_timers WHERE kind = 'DEADLINE'
UNION ALL
SELECT 'completions', count(*)::integer,
    count(*) FILTER (WHERE reported_at < now() - interval '1 minute')::integer,
    COALESCE(extract(epoch FROM now() - min(reported_at)), 0)::double precision, 0, NULL
FROM admission_reports WHERE told_at IS NULL;

-- name: mails_failed
SELECT count(*)::integer AS mails, max(last_error) AS error FROM order_mails WHERE state = 'FAILED';

-- name: gateways_needed
-- Gateways that open payments and pending refunds wait for.
SELECT gateway, count(*)::integer AS open FROM (
    SELECT p.gateway FROM order_timers t JOIN payments p ON p.order_id = t.order_id
    WHERE t.kind = 'PAYMENT'
    UNION ALL
    SELECT gateway FROM refunds WHERE state = 'PENDING'
) AS g GROUP BY gateway ORDER BY gateway;

-- name: clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms;

-- name: revision
SELECT max(version_num) FROM alembic_version;
