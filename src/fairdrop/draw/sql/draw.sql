-- name: draw_of
-- The draw of a sale with the settings it depends on. The seed is a secret until the state is DRAWN.
SELECT d.*, s.slug, s.name, s.commitment, s.opens_at, s.lobby_ms, s.window_ms, s.beacon,
    s.beacon_failure
FROM draws d JOIN sales s ON s.id = d.sale_id WHERE d.sale_id = $1;

-- name: unfinished
-- Draws under way. There is one row a sale, so no index is worth its keep.
SELECT sale_id FROM draws WHERE state IN ('FIXED', 'DRAWN');

-- name: try_lock
-- One worker holds a sale's draw; the lock goes with its connection, so a dead worker holds nothing.
SELECT pg_try_advisory_xact_lock(hashtextextended('fairdrop.draw:' || $1::text, 0));

-- name: fix
-- The list is closed: from here on the root can only be this one. Nothing when it is fixed already.
UPDATE draws SET state = 'FIXED', epoch = $2, entries = $3, root = $4, fixed_at = clock_timestamp()
WHERE sale_id = $1 AND state = 'COMMITTED' RETURNING state;

-- name: reveal
-- The beacon's value is known: from here on the order can only be one, and the seed is public.
UPDATE draws SET state = 'DRAWN', beacon_value = $2, beacon_proof = $3, beacon_problem = $4,
    drawn_at = clock_timestamp()
WHERE sale_id = $1 AND state = 'FIXED' RETURNING state;

-- name: enter_beacon
-- A value that the operator enters, once the list is closed and before the draw.
UPDATE draws SET beacon_value = $2 WHERE sale_id = $1 AND state = 'FIXED' RETURNING state;

-- name: filled
UPDATE draws SET state = 'FILLED', filled_at = clock_timestamp()
WHERE sale_id = $1 AND state = 'DRAWN' RETURNING state;

-- name: add_part
-- A part of a public file; parts count from 0.
INSERT INTO draw_files (sale_id, name, part, body) VALUES ($1, $2, $3, $4);

-- name: file_size
SELECT sum(length(body))::bigint FROM draw_files WHERE sale_id = $1 AND name = $2;

-- name: file_part
SELECT body FROM draw_files WHERE sale_id = $1 AND name = $2 AND part = $3;

-- name: insert_audit
INSERT INTO operator_audit (actor, action, sale_id, detail) VALUES ($1, $2, $3, $4);
