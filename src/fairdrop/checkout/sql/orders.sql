-- name: insert_orders
-- The order rows of a batch, in id order. An id that exists, or an admission that has an order
-- already (W13), is left out of what is returned.
INSERT INTO orders (id, sale_id, buyer, admission, state, currency, subtotal_minor, fee_minor,
    total_minor, email, name, deadline, verified)
SELECT id, sale_id, buyer, admission, 'RESERVED', currency, subtotal, fee, subtotal + fee, email,
    name, deadline, string_to_array(verified, ',')
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
    $8::text[], $9::text[], $10::timestamptz[], $11::text[])
    AS o (id, sale_id, buyer, admission, currency, subtotal, fee, email, name, deadline, verified)
ON CONFLICT DO NOTHING
RETURNING id, created_at;

-- name: insert_units
-- The units of orders; one that another order has is left out of what is returned (H2, H8).
INSERT INTO units (variant_id, serial, order_id, state)
SELECT variant_id, serial, order_id, $4
FROM unnest($1::uuid[], $2::integer[], $3::uuid[]) AS u (variant_id, serial, order_id)
ORDER BY variant_id, serial
ON CONFLICT DO NOTHING
RETURNING order_id, variant_id, serial;

-- name: insert_lines
INSERT INTO order_lines (order_id, variant_id, serials, price_minor)
SELECT order_id, variant_id, string_to_array(serials, ',')::integer[], price_minor
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[])
    AS l (order_id, variant_id, serials, price_minor);

-- name: drop_orders
-- Orders of this very transaction whose units turned out to belong to another one.
DELETE FROM orders WHERE id = ANY($1::uuid[]);

-- name: delete_units
-- The units of orders that end here go back; only what the order itself has.
DELETE FROM units WHERE order_id = ANY($1::uuid[]);

-- name: order
-- One order with its payment.
SELECT o.*, s.gateway, s.capture, s.epoch, s.payment_attempts, p.intent_id, p.pay_url,
    p.state AS payment_state, p.last_decline
FROM orders o JOIN sales s ON s.id = o.sale_id LEFT JOIN payments p ON p.order_id = o.id
WHERE o.id = ANY($1::uuid[]);

-- name: lines_of
SELECT l.order_id, l.variant_id, l.serials, l.price_minor, v.name, v.product
FROM order_lines l JOIN variants v ON v.id = l.variant_id
WHERE l.order_id = ANY($1::uuid[]) ORDER BY l.order_id, v.position;

-- name: begin_payment
-- RESERVED -> PAYMENT_PENDING while the deadline has not passed; the deadline moves once (H4).
-- Rows are locked in id order.
WITH locked AS (
    SELECT o.id, s.payment_ttl_ms, s.gateway, s.capture, s.epoch
    FROM orders o JOIN sales s ON s.id = o.sale_id
        JOIN unnest($1::uuid[], $2::text[]) AS asked (id, buyer)
            ON asked.id = o.id AND asked.buyer = o.buyer
    WHERE o.state = 'RESERVED' AND o.deadline > now()
    ORDER BY o.id FOR UPDATE OF o
)
UPDATE orders o SET state = 'PAYMENT_PENDING', updated_at = now(),
    deadline = o.deadline + l.payment_ttl_ms * interval '1 millisecond'
FROM locked l WHERE o.id = l.id
RETURNING o.id, o.sale_id, o.buyer, l.gateway, l.capture, l.epoch, o.total_minor, o.currency, o.deadline;

-- name: insert_payments
INSERT INTO payments (order_id, gateway, state, amount_minor, currency)
SELECT order_id, gateway, 'CREATING', amount, currency
FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[])
    AS p (order_id, gateway, amount, currency)
ON CONFLICT DO NOTHING;

-- name: insert_deadlines
INSERT INTO order_timers (order_id, kind, at)
SELECT order_id, 'DEADLINE', at FROM unnest($1::uuid[], $2::timestamptz[]) AS t (order_id, at);

-- name: payments_begun
-- The deadline has moved, and from some time on the gateway is asked.
WITH moved AS (
    UPDATE order_timers t SET at = n.at
    FROM unnest($1::uuid[], $2::timestamptz[]) AS n (order_id, at)
    WHERE t.order_id = n.order_id AND t.kind = 'DEADLINE'
)
INSERT INTO order_timers (order_id, kind, at)
SELECT order_id, 'PAYMENT', now() + $3 * interval '1 millisecond'
FROM unnest($1::uuid[]) AS n (order_id)
ON CONFLICT DO NOTHING;

-- name: payments_opened
-- The gateway has made the intents. Never backwards: a webhook may have been faster.
UPDATE payments p SET intent_id = t.intent_id, pay_url = t.pay_url,
    state = CASE WHEN p.state = 'CREATING' THEN 'OPEN' ELSE p.state END
FROM unnest($1::uuid[], $2::text[], $3::text[]) AS t (order_id, intent_id, pay_url)
WHERE p.order_id = t.order_id AND p.intent_id IS NULL;

-- name: cancel_order
-- The buyer gives the order up; not while the money that they have agreed to pay is being taken.
UPDATE orders SET state = 'CANCELLED', updated_at = now()
WHERE id = $1 AND buyer = $2 AND state IN ('RESERVED', 'PAYMENT_PENDING')
    AND NOT EXISTS (SELECT FROM payments p WHERE p.order_id = $1 AND p.state = 'AUTHORISED')
RETURNING sale_id, total_minor, currency;

-- name: lock_order
SELECT o.id, o.state, o.sale_id FROM orders o WHERE o.id = $1 AND o.buyer = $2 FOR UPDATE;

-- name: end_deadlines
-- Orders that end unpaid have no deadline any more; their intents are looked at now.
WITH ended AS (
    DELETE FROM order_timers WHERE order_id = ANY($1::uuid[]) AND kind = 'DEADLINE'
)
UPDATE order_timers SET at = now() WHERE order_id = ANY($1::uuid[]) AND kind = 'PAYMENT';

-- name: orders_of_sale
-- A page of a sale's orders, oldest first, after the id given.
SELECT o.*, s.gateway, s.capture, s.epoch, s.payment_attempts, p.intent_id, p.pay_url,
    p.state AS payment_state, p.last_decline
FROM orders o JOIN sales s ON s.id = o.sale_id LEFT JOIN payments p ON p.order_id = o.id
WHERE o.sale_id = $1 AND ($2::text IS NULL OR o.state = $2)
    AND ($3::uuid IS NULL OR o.id > $3)
ORDER BY o.id LIMIT $4;

-- name: transitions_of
SELECT at, from_state, to_state, cause FROM order_transitions WHERE order_id = $1 ORDER BY at;

-- name: states_of_sale
SELECT state, count(*) AS orders FROM orders WHERE sale_id = $1 GROUP BY state;
