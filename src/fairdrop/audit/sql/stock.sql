-- The database's side of what the store has.

-- name: sales
-- Sales that were ever in the store.
SELECT id, slug, mode, epoch FROM sales WHERE epoch > 0 ORDER BY id;

-- name: variants
SELECT id, quantity, last_serial, retired FROM variants WHERE sale_id = $1 ORDER BY position;

-- name: units
SELECT serial, order_id, state FROM units WHERE variant_id = $1 ORDER BY serial;

-- name: live_orders
-- Orders under way: each has a hold.
SELECT id FROM orders WHERE sale_id = $1 AND state IN ('RESERVED', 'PAYMENT_PENDING') ORDER BY id;

-- name: orders_of_holds
SELECT id, state FROM orders WHERE id = ANY($1::uuid[]);
