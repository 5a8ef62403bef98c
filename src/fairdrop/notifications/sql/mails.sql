-- name: mails_due
-- Mails to send, oldest first. Each is put off while somebody tries, twice as long each time; what
-- nobody could send for $2 tries is given up, and shown to the operator.
WITH due AS (
    SELECT order_id, kind FROM order_mails
    WHERE state = 'PENDING' AND next_try_at <= now()
    ORDER BY next_try_at LIMIT $1 FOR UPDATE SKIP LOCKED
), tried AS (
    UPDATE order_mails m SET attempts = m.attempts + 1, next_try_at = now()
        + least(5000 * power(2, least(m.attempts, 12)), 3600000) * interval '1 millisecond',
        state = CASE WHEN m.attempts >= $2 THEN 'FAILED' ELSE m.state END
    FROM due WHERE m.order_id = due.order_id AND m.kind = due.kind
    RETURNING m.order_id, m.kind, m.state, m.created_at
)
SELECT t.order_id, t.created_at, o.email, o.name, o.fee_minor, o.total_minor, o.currency,
    s.name AS sale,
    array_agg(v.product ORDER BY v.position, v.id) AS products,
    array_agg(v.name ORDER BY v.position, v.id) AS names,
    array_agg(array_to_string(l.serials, ',') ORDER BY v.position, v.id) AS serials,
    array_agg(l.price_minor ORDER BY v.position, v.id) AS prices
FROM tried t JOIN orders o ON o.id = t.order_id JOIN sales s ON s.id = o.sale_id
    JOIN order_lines l ON l.order_id = o.id JOIN variants v ON v.id = l.variant_id
WHERE t.state = 'PENDING'
GROUP BY t.order_id, t.created_at, o.email, o.name, o.fee_minor, o.total_minor, o.currency, s.name
ORDER BY t.order_id;

-- name: mail_sent
-- Without waiting for the disk, for which buyers wait as well: after a power cut a mail of the last
-- second may be sent once more, under the same Message-ID.
UPDATE order_mails SET state = 'SENT', sent_at = clock_timestamp(), last_error = NULL
FROM set_config('synchronous_commit', 'off', true)
WHERE order_id = $1 AND kind = 'CONFIRMATION';

-- name: mail_put_off
UPDATE order_mails SET last_error = $2 WHERE order_id = $1 AND kind = 'CONFIRMATION';

-- name: mail_refused
UPDATE order_mails SET state = 'FAILED', last_error = $2
WHERE order_id = $1 AND kind = 'CONFIRMATION';
