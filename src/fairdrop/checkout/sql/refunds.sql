-- name: lock_pool
-- As whoever fills the store does: one after the other, for the order's sale. Before its row's lock.
SELECT pg_advisory_xact_lock(hashtextextended('fairdrop.load:' || o.sale_id::text, 0))
FROM orders o WHERE o.id = $1;

-- name: lock_order
-- The order to refund, with what its payment has brought in. Its row is locked: refunds asked for
-- together are decided one after the other (O9).
SELECT o.id, o.sale_id, o.state, o.currency, o.subtotal_minor, o.fee_minor, o.total_minor,
    o.buyer, s.epoch, p.gateway, p.intent_id, COALESCE(p.received_minor, 0) AS received_minor
FROM orders o JOIN sales s ON s.id = o.sale_id LEFT JOIN payments p ON p.order_id = o.id
WHERE o.id = $1 FOR UPDATE OF o;

-- name: refund_of_key
-- The refund that this key asked for before.
SELECT * FROM refunds WHERE order_id = $1 AND request_key = $2;

-- name: refunds_of
SELECT * FROM refunds WHERE order_id = $1 ORDER BY created_at, id;

-- name: granted
-- What was granted so far; refunds on their way count (O9).
SELECT COALESCE(sum(amount_minor), 0)::bigint AS amount, COALESCE(sum(fee_minor), 0)::bigint AS fee
FROM refunds WHERE order_id = $1;

-- name: units_of_order
-- Each unit of the order with its price, and whether its money went back.
SELECT l.variant_id, s.serial, l.price_minor, r.refund_id IS NOT NULL AS refunded
FROM order_lines l CROSS JOIN unnest(l.serials) AS s (serial)
    LEFT JOIN refund_units r ON r.order_id = l.order_id AND r.variant_id = l.variant_id
        AND r.serial = s.serial
WHERE l.order_id = $1 ORDER BY l.variant_id, s.serial;

-- name: insert_refund_units
INSERT INTO refund_units (refund_id, order_id, variant_id, serial, to_pool)
SELECT $1, $2, variant_id, serial, $5
FROM unnest($3::uuid[], $4::integer[]) AS u (variant_id, serial);

-- name: units_to_pool
-- Units that are no longer their order's: whoever takes them next gets rows of their own.
DELETE FROM units u USING unnest($2::uuid[], $3::integer[]) AS d (variant_id, serial)
WHERE u.variant_id = d.variant_id AND u.serial = d.serial AND u.order_id = $1;

-- name: pools_to_tell
-- Refunds whose units the store has yet to hear of; any of them, so that those of a sale which the
-- store has not got keep no others waiting. late: the units were sold from the order's second hold.
SELECT r.id, r.order_id, r.pool_epoch, o.sale_id, o.buyer, o.admission, s.epoch, EXISTS (
    SELECT FROM order_transitions t WHERE t.order_id = o.id AND t.cause = 'paid_late'
) AS late
FROM refunds r JOIN orders o ON o.id = r.order_id JOIN sales s ON s.id = o.sale_id
WHERE r.pool_epoch IS NOT NULL AND ($2::uuid IS NULL OR r.id = $2)
ORDER BY random() LIMIT $1;

-- name: units_of_refunds
SELECT refund_id, variant_id, array_agg(serial ORDER BY serial) AS serials FROM refund_units
WHERE refund_id = ANY($1::uuid[]) AND to_pool GROUP BY refund_id, variant_id ORDER BY variant_id;

-- name: pool_told
UPDATE refunds SET pool_epoch = NULL WHERE id = ANY($1::uuid[]);

-- name: insert_refund
-- A refund that an operator has granted; due at once.
INSERT INTO refunds (id, order_id, gateway, intent_id, amount_minor, currency, reason, state,
    next_try_at, request_key, request_digest, fee_minor, pool_epoch)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'PENDING', now(), $8, $9, $10, $11)
RETURNING *;

-- name: set_state
UPDATE orders SET state = $2, updated_at = now() WHERE id = $1;
