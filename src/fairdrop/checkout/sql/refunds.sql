-- name: lock_order
-- The order to refund, with what its payment has brought in. Its row is locked: refunds asked for
-- together are decided one after the other (O9).
SELECT o.id, o.sale_id, o.state, o.currency, o.subtotal_minor, o.fee_minor, o.total_minor,
    p.gateway, p.intent_id, COALESCE(p.received_minor, 0) AS received_minor
FROM orders o LEFT JOIN payments p ON p.order_id = o.id
WHERE o.id = $1 FOR UPDATE OF o;

-- name: refund_of_key
-- The refund that this key asked for before.
SELECT * FROM refunds WHERE order_id = $1 AND request_key = $2;

-- name: refunds_of
SELECT * FROM refunds WHERE order_id = $1 ORDER BY created_at, id;

-- name: granted_minor
-- What was granted so far; refunds on their way count (O9).
SELECT COALESCE(sum(amount_minor), 0)::bigint FROM refunds WHERE order_id = $1;

-- name: insert_refund
-- A refund that an operator has granted; due at once.
INSERT INTO refunds (id, order_id, gateway, intent_id, amount_minor, currency, reason, state,
    next_try_at, request_key, request_digest)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'PENDING', now(), $8, $9)
RETURNING *;

-- name: set_state
UPDATE orders SET state = $2, updated_at = now() WHERE id = $1;
