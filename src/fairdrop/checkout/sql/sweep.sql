-- name: expire_orders
-- The row first, the store after (H7): orders whose deadline has passed end here. Rows are locked
-- in id order; those that a settlement holds are left to it. The order's own deadline is asked as well:
-- of a row that changed while this waited, PostgreSQL looks at the row anew, and not at the timer.
WITH due AS (
    SELECT o.id, o.state FROM order_timers t JOIN orders o ON o.id = t.order_id
    WHERE t.kind = 'DEADLINE' AND t.at <= now() AND o.deadline <= now() AND o.state IN ('RESERVED', 'PAYMENT_PENDING')
    ORDER BY o.id LIMIT $1 FOR UPDATE OF o SKIP LOCKED
)
UPDATE orders o SET state = 'EXPIRED', updated_at = now() FROM due WHERE o.id = due.id
RETURNING o.id, o.sale_id, due.state AS from_state, o.total_minor, o.currency, o.buyer;

-- name: insert_tombstones
-- A hold that began checkout and has no row past its deadline gets one that is over, so that a
-- late insert of the same id is refused and the units can go back.
INSERT INTO orders (id, sale_id, buyer, state, currency, subtotal_minor, fee_minor, total_minor,
    deadline)
SELECT id, $2, buyer, 'EXPIRED', $4, 0, 0, 0, now()
FROM unnest($1::uuid[], $3::text[]) AS t (id, buyer) ORDER BY id
ON CONFLICT DO NOTHING
RETURNING id;

-- name: order_states
SELECT id, state, buyer, admission, deadline FROM orders WHERE id = ANY($1::uuid[]);

-- name: owners
-- Whose the units are that orders' holds have: what is sold is read from the units, whatever became of
-- the order's money since. A unit that an order has given back for money was sold to it, too: the store
-- hears of the sale first, and of the return by itself.
SELECT h.variant_id::text AS variant, h.serial,
    COALESCE(r.order_id, u.order_id)::text AS owner,
    CASE WHEN r.order_id IS NULL THEN u.state ELSE 'SOLD' END AS state
FROM unnest($1::uuid[], $2::integer[], $3::uuid[]) AS h (variant_id, serial, order_id)
    LEFT JOIN units u ON u.variant_id = h.variant_id AND u.serial = h.serial
    LEFT JOIN refund_units r ON r.order_id = h.order_id AND r.variant_id = h.variant_id
        AND r.serial = h.serial AND r.to_pool
WHERE u.order_id IS NOT NULL OR r.order_id IS NOT NULL;

-- name: payments_due
-- Payments to ask the gateways $3 about. Each is put off while somebody asks, twice as long each time.
WITH due AS (
    SELECT t.order_id FROM order_timers t JOIN payments p ON p.order_id = t.order_id
    WHERE t.kind = 'PAYMENT' AND t.at <= now() AND p.gateway = ANY($3::text[])
    ORDER BY t.at LIMIT $1 FOR UPDATE OF t SKIP LOCKED
)
UPDATE order_timers t SET tries = t.tries + 1, at = now()
    + least($2 * power(2, least(t.tries, 12)), 300000) * interval '1 millisecond'
FROM due, payments p, orders o
WHERE t.order_id = due.order_id AND t.kind = 'PAYMENT'
    AND p.order_id = due.order_id AND o.id = due.order_id
RETURNING p.order_id, p.gateway, p.intent_id, p.state, t.tries, p.amount_minor, p.currency,
    o.state AS order_state;

-- name: close_payments
-- These intents can never bring money any more.
WITH asked AS (
    DELETE FROM order_timers WHERE order_id = ANY($1::uuid[]) AND kind = 'PAYMENT'
)
UPDATE payments SET state = 'CLOSED'
WHERE order_id = ANY($1::uuid[]) AND state IN ('CREATING', 'OPEN', 'AUTHORISED');

-- name: refunds_due
-- Refunds that the gateways $2 have to carry out. Each is put off while somebody tries, twice as long
-- each time.
WITH due AS (
    SELECT id FROM refunds
    WHERE state = 'PENDING' AND next_try_at <= now() AND gateway = ANY($2::text[])
    ORDER BY next_try_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE refunds r SET attempts = r.attempts + 1, next_try_at = now()
    + least(1000 * power(2, least(r.attempts, 12)), 300000) * interval '1 millisecond'
FROM due WHERE r.id = due.id
RETURNING r.id, r.order_id, r.gateway, r.intent_id, r.amount_minor, r.currency;

-- name: refund_failed
UPDATE refunds SET last_error = $2 WHERE id = $1 AND state = 'PENDING';
