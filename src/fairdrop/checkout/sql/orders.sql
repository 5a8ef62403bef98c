-- name: write_orders
-- The orders of a batch with all that belongs to them, in id order: rows, units, lines, deadlines,
-- audit, events. An id that exists, or an admission that has an order already (W13), is left out of
-- what is returned. Fails, and changes nothing, when another order has one of the units (H2, H8).
WITH asked AS (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[],
        $7::bigint[], $8::text[], $9::text[], $10::timestamptz[], $11::text[], $12::uuid[])
        AS o (id, sale_id, buyer, admission, currency, subtotal, fee, email, name, deadline, verified,
            event)
), written AS (
    INSERT INTO orders (id, sale_id, buyer, admission, state, currency, subtotal_minor, fee_minor,
        total_minor, email, name, deadline, verified)
    SELECT id, sale_id, buyer, admission, 'RESERVED', currency, subtotal, fee, subtotal + fee, email,
        name, deadline, string_to_array(verified, ',')
    FROM asked
    ON CONFLICT DO NOTHING
    RETURNING id, sale_id, deadline, created_at
), lines AS (
    SELECT order_id, variant_id, string_to_array(serials, ',')::integer[] AS serials, price_minor
    FROM unnest($13::uuid[], $14::uuid[], $15::text[], $16::bigint[])
        AS l (order_id, variant_id, serials, price_minor)
    WHERE order_id IN (SELECT id FROM written)
), taken AS (
    INSERT INTO units (variant_id, serial, order_id, state)
    SELECT variant_id, unnest(serials) AS serial, order_id, 'HELD' FROM lines
    ORDER BY variant_id, serial
), priced AS (
    INSERT INTO order_lines (order_id, variant_id, serials, price_minor)
    SELECT order_id, variant_id, serials, price_minor FROM lines
), timed AS (
    INSERT INTO order_timers (order_id, kind, at) SELECT id, 'DEADLINE', deadline FROM written
), noted AS (
    INSERT INTO order_transitions (order_id, to_state, cause)
    SELECT id, 'RESERVED', 'start' FROM written
), told AS (
    INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload)
    SELECT event, 'order', id::text, 'order.reserved',
        jsonb_build_object('order', id, 'sale', sale_id)
    FROM asked WHERE id IN (SELECT id FROM written)
)
SELECT id, created_at FROM written;

-- name: known_orders
SELECT id FROM orders WHERE id = ANY($1::uuid[]);

-- name: owners_of_units
SELECT u.variant_id, u.serial, u.order_id
FROM units u JOIN unnest($1::uuid[], $2::integer[]) AS w (variant_id, serial) USING (variant_id, serial);

-- name: insert_units
-- The units of orders; one that another order has is left out of what is returned (H2, H8).
INSERT INTO units (variant_id, serial, order_id, state)
SELECT variant_id, serial, order_id, $4
FROM unnest($1::uuid[], $2::integer[], $3::uuid[]) AS u (variant_id, serial, order_id)
ORDER BY variant_id, serial
ON CONFLICT DO NOTHING
RETURNING order_id, variant_id, serial;

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

-- name: begin_payments
-- RESERVED -> PAYMENT_PENDING while the deadline has not passed; the deadline moves once (H4). With it
-- the payment's row, the audit's, and the time from which the gateway is asked. Rows are locked in id
-- order.
WITH locked AS (
    SELECT o.id, s.payment_ttl_ms, s.gateway, s.capture, s.epoch, s.payment_attempts
    FROM orders o JOIN sales s ON s.id = o.sale_id
        JOIN unnest($1::uuid[], $2::text[]) AS asked (id, buyer)
            ON asked.id = o.id AND asked.buyer = o.buyer
    WHERE o.state = 'RESERVED' AND o.deadline > now()
    ORDER BY o.id FOR UPDATE OF o
), begun AS (
    UPDATE orders o SET state = 'PAYMENT_PENDING', updated_at = now(),
        deadline = o.deadline + l.payment_ttl_ms * interval '1 millisecond'
    FROM locked l WHERE o.id = l.id
    RETURNING o.*, l.gateway, l.capture, l.epoch, l.payment_attempts
), owed AS (
    INSERT INTO payments (order_id, gateway, state, amount_minor, currency)
    SELECT id, gateway, 'CREATING', total_minor, currency FROM begun
    ON CONFLICT DO NOTHING
), moved AS (
    UPDATE order_timers t SET at = b.deadline FROM begun b WHERE t.order_id = b.id AND t.kind = 'DEADLINE'
), asking AS (
    INSERT INTO order_timers (order_id, kind, at)
    SELECT id, 'PAYMENT', now() + $3 * interval '1 millisecond' FROM begun
    ON CONFLICT DO NOTHING
), noted AS (
    INSERT INTO order_transitions (order_id, from_state, to_state, cause)
    SELECT id, 'RESERVED', 'PAYMENT_PENDING', 'pay' FROM begun
)
SELECT b.*, 'CREATING' AS payment_state, NULL::text AS pay_url, NULL::text AS last_decline, l.*
FROM begun b CROSS JOIN LATERAL (
    SELECT array_agg(l.variant_id ORDER BY v.position) AS variants,
        array_agg(v.product ORDER BY v.position) AS products,
        array_agg(v.name ORDER BY v.position) AS variant_names,
        array_agg(array_to_string(l.serials, ',') ORDER BY v.position) AS serials,
        array_agg(l.price_minor ORDER BY v.position) AS prices
    FROM order_lines l JOIN variants v ON v.id = l.variant_id WHERE l.order_id = b.id
) l;

-- name: payments_opened
-- The gateway has made the intents. Never backwards: a webhook may have been faster. Returns the orders
-- that are paid for from here on: under way, and with the payment that was opened here. Without waiting
-- for the disk: what a power cut takes is what a death just before this takes, and the reconciler finds it.
UPDATE payments p SET intent_id = t.intent_id, pay_url = t.pay_url,
    state = CASE WHEN p.state = 'CREATING' THEN 'OPEN' ELSE p.state END
FROM set_config('synchronous_commit', 'off', true),
    unnest($1::uuid[], $2::text[], $3::text[]) AS t (order_id, intent_id, pay_url)
    JOIN orders o ON o.id = t.order_id
WHERE p.order_id = t.order_id AND p.intent_id IS NULL
RETURNING p.order_id, p.state = 'OPEN' AND o.state = 'PAYMENT_PENDING' AS payable;

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
