-- Stock while a sale runs, and where it comes from (H9).

-- name: stock_of
SELECT v.quantity, s.epoch FROM variants v JOIN sales s ON s.id = v.sale_id
WHERE v.sale_id = $1 AND v.id = $2 FOR UPDATE OF v;

-- name: stock_change
SELECT variant_id, delta FROM stock_changes WHERE sale_id = $1 AND request_key = $2;

-- name: note_stock_change
INSERT INTO stock_changes (sale_id, request_key, variant_id, delta) VALUES ($1, $2, $3, $4);

-- name: add_units
-- More units: new serials at the end.
UPDATE variants SET quantity = quantity + $2, last_serial = last_serial + $2 WHERE id = $1;

-- name: retire_units
-- Fewer units: the serials that the store has taken out of sale, each once.
UPDATE variants v SET quantity = v.quantity - cardinality(n.serials), retired = v.retired || n.serials
FROM (
    SELECT coalesce(array_agg(s.serial), '{}') AS serials
    FROM variants w, unnest($2::integer[]) AS s (serial)
    WHERE w.id = $1 AND s.serial <> ALL (w.retired)
) n
WHERE v.id = $1;

-- name: touch
-- A new version, which the store takes over.
UPDATE sales SET version = version + 1, updated_at = now() WHERE id = $1;

-- name: begin_load
-- One load for each opening time of a sale: a new time begins anew.
INSERT INTO stock_loads AS l (sale_id, opens_at) VALUES ($1, $2)
ON CONFLICT (sale_id) DO UPDATE SET opens_at = $2, attempts = 0, tried_at = NULL, loaded_at = NULL,
    given_up_at = NULL, last_error = NULL, units = NULL
WHERE l.opens_at <> $2;

-- name: claim_load
-- Somebody tries, now and then, until it is done or given up.
UPDATE stock_loads SET attempts = attempts + 1, tried_at = now()
WHERE sale_id = $1 AND loaded_at IS NULL AND given_up_at IS NULL
    AND (tried_at IS NULL OR tried_at <= now() - $2 * interval '1 millisecond')
RETURNING attempts;

-- name: load_done
UPDATE stock_loads SET loaded_at = now(), last_error = NULL, units = $2
WHERE sale_id = $1 AND loaded_at IS NULL RETURNING attempts;

-- name: load_failed
UPDATE stock_loads SET last_error = $2 WHERE sale_id = $1 AND loaded_at IS NULL;

-- name: give_up_load
UPDATE stock_loads SET given_up_at = now(), last_error = coalesce(last_error, $2)
WHERE sale_id = $1 AND loaded_at IS NULL AND given_up_at IS NULL RETURNING attempts, last_error;

-- name: load_of
SELECT opens_at, attempts, tried_at, loaded_at, given_up_at, last_error, units FROM stock_loads
WHERE sale_id = $1;

-- name: note_sold_out
-- The line has stopped because all is sold, or goes on; nothing when that is known.
UPDATE sales SET sold_out = $2 WHERE id = $1 AND sold_out <> $2 RETURNING id;
