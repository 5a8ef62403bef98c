-- The answers to keyed requests (H3).

-- name: begin
-- Take the key, if nobody has it: also one whose life is over, or whose request died (was begun some
-- time ago and never answered) and is asked for again.
INSERT INTO idempotency_keys AS k (client, key, fingerprint) VALUES ($1, $2, $3)
ON CONFLICT (client, key) DO UPDATE SET fingerprint = $3, begun_at = now(), status = NULL,
    content_type = NULL, body = NULL
WHERE k.begun_at < now() - $5 * interval '1 hour' OR (k.status IS NULL AND k.fingerprint = $3
    AND k.begun_at < now() - $4 * interval '1 second')
RETURNING true;

-- name: known
SELECT fingerprint, status, content_type, body FROM idempotency_keys WHERE client = $1 AND key = $2;

-- name: keep
UPDATE idempotency_keys SET status = $3, content_type = $4, body = $5
WHERE client = $1 AND key = $2;

-- name: forget
DELETE FROM idempotency_keys WHERE client = $1 AND key = $2 AND status IS NULL;

-- name: purge
DELETE FROM idempotency_keys WHERE (client, key) IN (SELECT client, key FROM idempotency_keys
    WHERE begun_at < now() - $1 * interval '1 hour' ORDER BY begun_at LIMIT $2)
RETURNING 1;
