-- Every statement on the sandbox gateway's books.

-- name: insert_intent
-- A new intent; inserts nothing when the idempotency key is taken.
INSERT INTO intents (id, amount_minor, currency, reference, return_url, idempotency_key, fingerprint,
                     created_ms, capture)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (idempotency_key) DO NOTHING

-- name: intent_by_id
SELECT id, status, amount_minor, currency, reference, return_url, amount_received_minor,
       amount_refunded_minor, last_decline, created_ms, capture
FROM intents WHERE id = ?

-- name: intent_by_key
-- The intent that an idempotency key made, its request's fingerprint last.
SELECT id, status, amount_minor, currency, reference, return_url, amount_received_minor,
       amount_refunded_minor, last_decline, created_ms, capture, fingerprint
FROM intents WHERE idempotency_key = ?

-- name: intents_by_reference
SELECT id, status, amount_minor, currency, reference, return_url, amount_received_minor,
       amount_refunded_minor, last_decline, created_ms, capture
FROM intents WHERE reference = ? ORDER BY created_ms DESC, id DESC LIMIT 100

-- name: mark_succeeded
UPDATE intents
SET status = 'succeeded', amount_received_minor = amount_minor, settle_at_ms = NULL,
    settle_decline = NULL, settle_mischief = NULL
WHERE id = ?

-- name: mark_authorized
UPDATE intents
SET status = 'requires_capture', settle_at_ms = NULL, settle_decline = NULL, settle_mischief = NULL
WHERE id = ?

-- name: mark_declined
UPDATE intents
SET status = 'requires_payment', last_decline = :decline_code, settle_at_ms = NULL,
    settle_decline = NULL, settle_mischief = NULL
WHERE id = :id

-- name: mark_processing
UPDATE intents
SET status = 'processing', settle_at_ms = :settle_at_ms, settle_decline = :settle_decline,
    settle_mischief = :settle_mischief
WHERE id = :id

-- name: mark_canceled
UPDATE intents SET status = 'canceled' WHERE id = ?

-- name: processing_intents
-- All attempts that a bank has yet to decide, for the timers after a start.
SELECT id, settle_at_ms FROM intents WHERE settle_at_ms IS NOT NULL

-- name: processing_intent
-- How one attempt will end; no row once it has.
SELECT settle_at_ms, settle_decline, settle_mischief FROM intents
WHERE id = ? AND status = 'processing'

-- name: insert_charge
INSERT INTO charges (id, intent, reference, amount_minor, currency, created_ms)
VALUES (?, ?, ?, ?, ?, ?)

-- name: charge_of_intent
SELECT seq, id, intent, reference, amount_minor, currency, created_ms FROM charges WHERE intent = ?

-- name: charges_after
SELECT seq, id, intent, reference, amount_minor, currency, created_ms
FROM charges WHERE seq > ? ORDER BY seq LIMIT ?

-- name: insert_refund
INSERT INTO refunds (id, intent, reference, amount_minor, currency, idempotency_key, created_ms)
VALUES (:id, :intent, :reference, :amount_minor, :currency, :idempotency_key, :created_ms)

-- name: add_refunded
-- The check on the table refuses more than was received.
UPDATE intents SET amount_refunded_minor = amount_refunded_minor + :amount_minor WHERE id = :id

-- name: refund_by_key
SELECT seq, id, intent, reference, amount_minor, currency, created_ms
FROM refunds WHERE idempotency_key = ?

-- name: refund_by_reference
SELECT seq, id, intent, reference, amount_minor, currency, created_ms
FROM refunds WHERE intent = ? AND reference = ?

-- name: refunds_after
SELECT seq, id, intent, reference, amount_minor, currency, created_ms
FROM refunds WHERE seq > ? ORDER BY seq LIMIT ?

-- name: insert_delivery
INSERT INTO deliveries (event, intent, body, created_ms, due_ms, held)
VALUES (?, ?, ?, ?, ?, ?)

-- name: stand_behind
-- Deliveries of this intent that let the next one go first now wait for it to be accepted.
UPDATE deliveries SET behind = ?, held = 0 WHERE intent = ? AND held = 1 AND event <> ?

-- name: due_deliveries
-- What may be sent now, longest due first.
SELECT seq, event, body, created_ms, due_ms, attempts FROM deliveries
WHERE behind IS NULL AND due_ms <= ? ORDER BY due_ms LIMIT ?

-- name: next_due
-- When the first of the later ones may be sent.
SELECT min(due_ms) FROM deliveries WHERE behind IS NULL AND due_ms > ?

-- name: delete_deliveries
-- Those whose numbers a JSON list has.
DELETE FROM deliveries WHERE seq IN (SELECT value FROM json_each(?))

-- name: release_behind
-- What waited for these deliveries may go now.
UPDATE deliveries SET behind = NULL, due_ms = ? WHERE behind IN (SELECT value FROM json_each(?))

-- name: postpone_delivery
-- Not accepted: held no longer, try again later.
UPDATE deliveries SET attempts = :attempts, due_ms = :due_ms, held = 0 WHERE seq = :seq

-- name: count_deliveries
SELECT count(*) FROM deliveries

-- name: read_mischief
SELECT defaults FROM mischief

-- name: write_mischief
INSERT INTO mischief (one, defaults) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET defaults = excluded.defaults
