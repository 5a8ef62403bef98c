-- name: insert_inbox
-- What gateways tell, before they are answered (O6). An event that is here already is left as it is.
WITH new AS (
    INSERT INTO webhook_inbox (gateway, event_id, kind, order_id, intent_id, refund_id,
        amount_minor, currency, detail)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::text[],
        $7::bigint[], $8::text[], $9::text[])
    ON CONFLICT (gateway, event_id) DO NOTHING
    RETURNING id
)
INSERT INTO webhook_due (id) SELECT id FROM new;

-- name: take_due
-- The events of one batch, oldest first; rows that another settler has are left to it.
SELECT w.id, w.gateway, w.kind, w.order_id, w.intent_id, w.refund_id, w.amount_minor, w.currency,
    w.detail, d.attempts
FROM webhook_due d JOIN webhook_inbox w ON w.id = d.id WHERE d.due_at <= now()
ORDER BY d.due_at, d.id LIMIT $1 FOR UPDATE OF d SKIP LOCKED;

-- name: take_these
-- Some events that are not settled yet, due or not; rows that another settler has are left to it.
SELECT w.id, w.gateway, w.kind, w.order_id, w.intent_id, w.refund_id, w.amount_minor, w.currency,
    w.detail, d.attempts
FROM webhook_due d JOIN webhook_inbox w ON w.id = d.id WHERE d.id = ANY($1::bigint[])
ORDER BY d.id FOR UPDATE OF d SKIP LOCKED;

-- name: due_now
SELECT id FROM webhook_due WHERE due_at <= now() ORDER BY due_at, id LIMIT $1;

-- name: late_orders
-- What orders that have given up their units had of each variant; not those whose buyers have begun
-- anew, which get their money back (W13).
SELECT order_id AS id, array_agg(variant_id::text) AS variants,
    array_agg(cardinality(serials)) AS quantities
FROM order_lines WHERE order_id = ANY($1::uuid[]) AND NOT order_id = ANY($2::uuid[])
GROUP BY order_id;

-- name: admissions_used
-- Orders whose buyers have begun anew with the same admission (W13).
SELECT o.id FROM orders o
WHERE o.id = ANY($1::uuid[]) AND EXISTS (SELECT FROM orders n
    WHERE n.sale_id = o.sale_id AND n.admission = o.admission AND n.id <> o.id
        AND n.state IN ('RESERVED', 'PAYMENT_PENDING', 'CONFIRMED'));

-- name: lock_orders
-- Locked in id order: two settlers, a sweep and a cancel never wait for each other in a circle.
SELECT o.id, o.sale_id, o.buyer, o.admission, o.state, o.currency, o.subtotal_minor, o.fee_minor,
    o.total_minor, o.refunded_minor, o.declines, s.payment_attempts, s.accept_late, s.epoch,
    COALESCE(o.late_until > now(), false) AS looking, o.email IS NOT NULL AS has_address,
    COALESCE(p.received_minor, 0) AS received_minor, p.state AS payment_state
FROM orders o JOIN sales s ON s.id = o.sale_id LEFT JOIN payments p ON p.order_id = o.id
WHERE o.id = ANY($1::uuid[]) ORDER BY o.id FOR UPDATE OF o;

-- name: insert_mails
-- Confirmations to send, due at once (O12): once an order, whatever confirms it how often.
INSERT INTO order_mails (order_id, kind) SELECT id, 'CONFIRMATION' FROM unnest($1::uuid[]) AS o (id)
ON CONFLICT DO NOTHING;

-- name: update_orders
UPDATE orders o SET state = t.state, declines = t.declines, refunded_minor = t.refunded,
    updated_at = now()
FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::bigint[])
    AS t (id, state, declines, refunded)
WHERE o.id = t.id;

-- name: sell_units
UPDATE units SET state = 'SOLD' WHERE order_id = ANY($1::uuid[]);

-- name: replace_serials
-- An order confirmed late has other serials than it had at first.
UPDATE order_lines l SET serials = string_to_array(t.serials, ',')::integer[]
FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS t (order_id, variant_id, serials)
WHERE l.order_id = t.order_id AND l.variant_id = t.variant_id;

-- name: payments_received
UPDATE payments p SET state = 'SUCCEEDED', received_minor = t.amount,
    intent_id = COALESCE(p.intent_id, t.intent_id)
FROM unnest($1::uuid[], $2::bigint[], $3::text[]) AS t (order_id, amount, intent_id)
WHERE p.order_id = t.order_id;

-- name: insert_received
-- Money for orders that never asked for it: an intent that somebody made at the gateway directly.
INSERT INTO payments (order_id, gateway, intent_id, state, amount_minor, currency, received_minor)
SELECT order_id, gateway, intent_id, 'SUCCEEDED', amount, currency, amount
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    AS t (order_id, gateway, intent_id, amount, currency);

-- name: payments_authorised
-- The bank has set the money aside. The order keeps its units until it is taken, which is due at
-- once; money that cannot be taken in time lets them go. Also of intents that nobody asked for.
WITH set_aside AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[])
        AS t (order_id, gateway, intent_id, amount, currency)
), paid AS (
    INSERT INTO payments AS p (order_id, gateway, intent_id, state, amount_minor, currency)
    SELECT order_id, gateway, intent_id, 'AUTHORISED', amount, currency FROM set_aside
    ON CONFLICT (order_id) DO UPDATE SET state = 'AUTHORISED',
        intent_id = COALESCE(p.intent_id, EXCLUDED.intent_id)
), kept AS (
    UPDATE orders o SET deadline = now() + $6 * interval '1 millisecond'
    FROM set_aside s WHERE o.id = s.order_id
)
INSERT INTO order_timers AS t (order_id, kind, at)
SELECT order_id, kind, now() + CASE kind WHEN 'DEADLINE' THEN $6 ELSE 0 END * interval '1 millisecond'
FROM set_aside CROSS JOIN (VALUES ('DEADLINE'), ('PAYMENT')) AS k (kind)
ON CONFLICT (order_id, kind) DO UPDATE SET at = EXCLUDED.at, tries = 0;

-- name: payments_to_void
-- Money set aside for nothing: the gateway is told to let it go, at once and until it has.
WITH set_aside AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[])
        AS t (order_id, gateway, intent_id, amount, currency)
), known AS (
    INSERT INTO payments AS p (order_id, gateway, intent_id, state, amount_minor, currency)
    SELECT order_id, gateway, intent_id, 'OPEN', amount, currency FROM set_aside
    ON CONFLICT (order_id) DO UPDATE SET intent_id = COALESCE(p.intent_id, EXCLUDED.intent_id)
)
INSERT INTO order_timers AS t (order_id, kind, at)
SELECT order_id, 'PAYMENT', now() FROM set_aside
ON CONFLICT (order_id, kind) DO UPDATE SET at = EXCLUDED.at, tries = 0;

-- name: payments_declined
UPDATE payments p SET last_decline = t.reason
FROM unnest($1::uuid[], $2::text[]) AS t (order_id, reason)
WHERE p.order_id = t.order_id;

-- name: payments_closed
UPDATE payments SET state = 'CLOSED'
WHERE order_id = ANY($1::uuid[]) AND state IN ('CREATING', 'OPEN', 'AUTHORISED');

-- name: delete_timers
-- Orders whose money has come, or can never come: nothing happens to them by itself any more.
DELETE FROM order_timers WHERE order_id = ANY($1::uuid[]);

-- name: insert_refunds
INSERT INTO refunds (id, order_id, gateway, intent_id, amount_minor, currency, reason, state,
    next_try_at)
SELECT id, order_id, gateway, intent_id, amount, currency, reason, 'PENDING', now()
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[])
    AS r (id, order_id, gateway, intent_id, amount, currency, reason);

-- name: lock_refunds
SELECT id, order_id, amount_minor, currency, state FROM refunds
WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE;

-- name: refunds_succeeded
UPDATE refunds SET state = 'SUCCEEDED', next_try_at = NULL WHERE id = ANY($1::uuid[]);

-- name: settle_inbox
-- The mark, in the transaction that did the work (case 35).
WITH settled AS (
    DELETE FROM webhook_due WHERE id = ANY($1::bigint[])
)
UPDATE webhook_inbox w SET outcome = t.outcome
FROM unnest($1::bigint[], $2::text[]) AS t (id, outcome) WHERE w.id = t.id;

-- name: put_off_inbox
-- Events of orders that are not there (yet), and events that failed: kept, and tried again, less and
-- less often, never dropped (O6).
WITH put_off AS (
    UPDATE webhook_due SET attempts = attempts + 1, due_at = now()
        + least(200 * power(2, least(attempts, 12)), 60000) * interval '1 millisecond'
    WHERE id = ANY($1::bigint[]) RETURNING id
)
UPDATE webhook_inbox w SET outcome = $2 FROM put_off WHERE w.id = put_off.id;

-- name: put_off_late
-- Late payments, left for a moment to the settler that looks for units (O7).
UPDATE webhook_due SET attempts = attempts + 1, due_at = now() + $2 * interval '1 millisecond'
WHERE id = ANY($1::bigint[]);

-- name: lease_orders
-- Nobody else looks for units for these orders meanwhile: nothing is taken twice for one order.
UPDATE orders SET late_until = now() + $2 * interval '1 millisecond' WHERE id = ANY($1::uuid[]);
