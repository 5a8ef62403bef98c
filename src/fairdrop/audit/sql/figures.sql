-- The figures of one sale, for its report.

-- name: states
-- Orders by state. A row without lines is no order: it only keeps a late insert from being one.
SELECT o.state, count(*) AS orders FROM orders o
WHERE o.sale_id = $1 AND EXISTS (SELECT FROM order_lines l WHERE l.order_id = o.id)
GROUP BY o.state;

-- name: units
-- Per variant: units there are, units sold, and those sold beyond what there is. What counts is the
-- union of the lines of sold orders and of the rows of sold units, so that neither can hide a unit
-- that the other shows. A serial sold a second time, one that was never made and one that was taken
-- out of sale are all beyond.
WITH confirmed AS (
    SELECT o.id FROM orders o WHERE o.sale_id = $1
        AND (o.state IN ('CONFIRMED', 'PARTIALLY_REFUNDED', 'DISPUTED')
            OR (o.state IN ('REFUND_PENDING', 'REFUNDED') AND EXISTS (SELECT FROM order_transitions t
                WHERE t.order_id = o.id AND t.to_state = 'CONFIRMED')))
), sold AS (
    SELECT l.variant_id, s.serial, l.order_id
    FROM confirmed c JOIN order_lines l ON l.order_id = c.id CROSS JOIN unnest(l.serials) AS s (serial)
    WHERE NOT EXISTS (SELECT FROM refund_units r WHERE r.to_pool AND r.order_id = l.order_id
        AND r.variant_id = l.variant_id AND r.serial = s.serial)
    UNION
    SELECT u.variant_id, u.serial, u.order_id FROM units u JOIN variants v ON v.id = u.variant_id
    WHERE v.sale_id = $1 AND u.state = 'SOLD'
), counted AS (
    SELECT v.id, v.quantity, count(s.serial) AS sold,
        count(DISTINCT s.serial) FILTER (WHERE s.serial BETWEEN 1 AND v.last_serial
            AND s.serial <> ALL (v.retired)) AS good
    FROM variants v LEFT JOIN sold s ON s.variant_id = v.id
    WHERE v.sale_id = $1 GROUP BY v.id
)
SELECT COALESCE(sum(quantity), 0)::bigint AS total, COALESCE(sum(sold), 0)::bigint AS sold,
    COALESCE(sum(sold - least(good, quantity)), 0)::bigint AS beyond
FROM counted;
