-- name: insert_sale
-- A new sale, not yet in the store (epoch 0). A taken slug raises a unique violation.
INSERT INTO sales (id, slug, name, description, timezone, opens_at, closes_at, currency,
    rate_per_s, cap, claim_ttl_ms, lease_ttl_ms, hold_ttl_ms, payment_ttl_ms, order_limit,
    buyer_limit, fee_bps, accept_late, payment_attempts, gateway, capture, burst_ms,
    line_cap_factor, adaptive, rate_min_per_s, rate_max_per_s, latency_target_ms, restore_grace_ms,
    lobby_ms, window_ms, beacon, beacon_failure, commitment, buffer_percent,
    stock_source)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35);

-- name: insert_draw
-- The secret seed that the sale is committed to.
INSERT INTO draws (sale_id, seed) VALUES ($1, $2);

-- name: insert_variants
-- The variants of a sale, in the order given.
INSERT INTO variants (id, sale_id, product, name, price_minor, quantity, last_serial, position)
SELECT id, $1, product, name, price_minor, quantity, quantity, position
FROM unnest($2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::integer[])
    WITH ORDINALITY AS v (id, product, name, price_minor, quantity, position);

-- name: sale_by_id
SELECT * FROM sales WHERE id = $1;

-- name: sale_by_slug
SELECT * FROM sales WHERE slug = $1;

-- name: list_sales
-- All sales, newest first.
SELECT * FROM sales ORDER BY created_at DESC, id LIMIT $1;

-- name: variants_of
SELECT * FROM variants WHERE sale_id = ANY($1::uuid[]) ORDER BY sale_id, position;

-- name: running_sales
-- Sales that a worker has to look after: all that may still take people, hold units or settle.
SELECT * FROM sales
WHERE mode <> 'closed' OR updated_at > now() - interval '1 day'
    OR EXISTS (SELECT FROM orders o WHERE o.sale_id = sales.id
        AND o.state IN ('RESERVED', 'PAYMENT_PENDING'))
ORDER BY id;

-- name: set_mode
-- A new mode, and a new version for the store to take over. Nothing when it is the mode already.
UPDATE sales SET mode = $2, version = version + 1, updated_at = now()
WHERE id = $1 AND mode = ANY($3::text[]) RETURNING version;

-- name: open_lobby
-- Opens a sale whose lobby is open: its window begins now. The store takes over the new time.
UPDATE sales SET opens_at = now(), version = version + 1, updated_at = now()
WHERE id = $1 AND mode = 'lobby' AND opens_at > now() RETURNING version;

-- name: note_mode
-- What the store's clock has done (opened, closed by time); the version stays, the store knows.
UPDATE sales SET mode = $2, updated_at = now()
WHERE id = $1 AND version = $3 AND mode <> $2;

-- name: set_epoch
-- The next epoch, taken under the sale's advisory lock before the store is loaded (H8).
UPDATE sales SET epoch = epoch + 1, updated_at = now() WHERE id = $1 AND epoch = $2
RETURNING epoch, line_mark, line_served, receipts_from, restore_grace_ms;

-- name: mark_line
-- How far the line of this epoch is, for the one that may have to be built anew (W15).
UPDATE sales SET line_mark = GREATEST(line_mark, $3), line_served = GREATEST(line_served, $4)
WHERE id = $1 AND epoch = $2;

-- name: reset_sale
-- The epoch in between is never filled, so the store is filled anew from the next one on, and
-- receipts of the ones before are worth nothing (case 3). Nothing while the sale calls people.
UPDATE sales SET epoch = epoch + 1, receipts_from = epoch + 2, line_mark = 0, line_served = 0,
    version = version + 1, updated_at = now()
WHERE id = $1 AND epoch > 0 AND mode IN ('scheduled', 'paused', 'closed') RETURNING epoch;

-- name: lock_loading
-- One process at a time loads or rebuilds a sale; held to the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('fairdrop.load:' || $1::text, 0));

-- name: units_of
-- Every unit that an order of the sale has.
SELECT u.variant_id, u.serial, u.order_id, u.state FROM units u
JOIN variants v ON v.id = u.variant_id WHERE v.sale_id = $1 ORDER BY u.variant_id, u.serial;

-- name: live_orders_of
-- The orders whose holds the store has to have, with their deadlines.
SELECT id, buyer, admission, deadline, verified FROM orders
WHERE sale_id = $1 AND state IN ('RESERVED', 'PAYMENT_PENDING');

-- name: bought_of
-- Units bought by each buyer, for the limit of the sale (H6).
SELECT o.buyer, count(*)::integer AS units FROM units u JOIN orders o ON o.id = u.order_id
WHERE o.sale_id = $1 AND u.state = 'SOLD' GROUP BY o.buyer;

-- name: insert_audit
-- What an operator did (W17, S3).
INSERT INTO operator_audit (actor, action, sale_id, detail) VALUES ($1, $2, $3, $4);

-- name: change_sale
-- New values for what an operator may change while a sale runs; NULL keeps the old one.
UPDATE sales SET
    name = COALESCE($2, name), description = COALESCE($3, description),
    opens_at = COALESCE($4, opens_at), closes_at = COALESCE($5, closes_at),
    rate_per_s = COALESCE($6, rate_per_s), cap = COALESCE($7, cap),
    claim_ttl_ms = COALESCE($8, claim_ttl_ms), lease_ttl_ms = COALESCE($9, lease_ttl_ms),
    hold_ttl_ms = COALESCE($10, hold_ttl_ms), payment_ttl_ms = COALESCE($11, payment_ttl_ms),
    order_limit = COALESCE($12, order_limit), buyer_limit = COALESCE($13, buyer_limit),
    accept_late = COALESCE($14, accept_late), payment_attempts = COALESCE($15, payment_attempts),
    burst_ms = COALESCE($16, burst_ms), line_cap_factor = COALESCE($17, line_cap_factor),
    adaptive = COALESCE($18, adaptive), rate_min_per_s = COALESCE($19, rate_min_per_s),
    rate_max_per_s = COALESCE($20, rate_max_per_s),
    latency_target_ms = COALESCE($21, latency_target_ms),
    restore_grace_ms = COALESCE($22, restore_grace_ms),
    lobby_ms = COALESCE($23, lobby_ms), window_ms = COALESCE($24, window_ms),
    beacon = COALESCE($25, beacon), beacon_failure = COALESCE($26, beacon_failure),
    buffer_percent = COALESCE($27, buffer_percent),
    stock_source = COALESCE($28, stock_source),
    version = version + 1, updated_at = now()
WHERE id = $1 RETURNING version;
