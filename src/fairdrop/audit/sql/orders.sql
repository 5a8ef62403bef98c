-- What orders, units, payments and refunds have to do with one another. Each query gives the rows
-- that are wrong, and in what way. None changes anything; each reads its tables once.
--
-- An order is sold when its units are its buyer's: it is CONFIRMED (or PARTIALLY_REFUNDED, DISPUTED),
-- or its money is going back (REFUND_PENDING, REFUNDED) after it had been confirmed.

-- name: order_checks
-- wrong: the kinds of differences of one order.
WITH confirmed AS (
    SELECT DISTINCT order_id FROM order_transitions WHERE to_state = 'CONFIRMED'
), explained AS (
    SELECT DISTINCT order_id, to_state FROM order_transitions
), lines AS (
    SELECT order_id, sum(cardinality(serials) * price_minor) AS subtotal_minor
    FROM order_lines GROUP BY order_id
), back AS (
    SELECT order_id, sum(amount_minor) AS granted,
        COALESCE(sum(amount_minor) FILTER (WHERE state = 'SUCCEEDED'), 0) AS done,
        count(*) FILTER (WHERE state = 'PENDING') AS pending
    FROM refunds GROUP BY order_id
), facts AS (
    SELECT o.id, o.sale_id, o.state, o.subtotal_minor, o.total_minor, o.refunded_minor,
        l.order_id IS NULL AS tombstone, e.order_id IS NOT NULL AS explained,
        o.state IN ('CONFIRMED', 'PARTIALLY_REFUNDED', 'DISPUTED')
            OR (o.state IN ('REFUND_PENDING', 'REFUNDED') AND c.order_id IS NOT NULL) AS sold,
        l.subtotal_minor AS lines_minor, COALESCE(p.state, 'none') AS payment_state,
        COALESCE(p.received_minor, 0) AS received, COALESCE(b.granted, 0) AS granted,
        COALESCE(b.done, 0) AS done, COALESCE(b.pending, 0) AS pending
    FROM orders o
        LEFT JOIN confirmed c ON c.order_id = o.id
        LEFT JOIN explained e ON e.order_id = o.id AND e.to_state = o.state
        LEFT JOIN lines l ON l.order_id = o.id
        LEFT JOIN payments p ON p.order_id = o.id
        LEFT JOIN back b ON b.order_id = o.id
)
SELECT * FROM (
    SELECT f.*, array_remove(ARRAY[
        CASE WHEN NOT explained AND NOT (tombstone AND state = 'EXPIRED')
            THEN 'order_unexplained' END,
        CASE WHEN tombstone AND state <> 'EXPIRED' THEN 'order_without_lines' END,
        CASE WHEN lines_minor <> subtotal_minor THEN 'order_subtotal' END,
        CASE WHEN sold AND (payment_state <> 'SUCCEEDED' OR received <> total_minor)
            THEN 'payment_missing' END,
        CASE WHEN NOT sold AND received > 0 AND granted < received THEN 'payment_unused' END,
        CASE WHEN granted > received THEN 'refund_exceeds_payment' END,
        CASE WHEN refunded_minor <> done THEN 'order_refunded_sum' END,
        CASE WHEN (state = 'REFUND_PENDING') <> (pending > 0)
            OR (state = 'REFUNDED' AND done < received)
            OR (state = 'PARTIALLY_REFUNDED' AND (done = 0 OR done >= received))
            OR (state = 'CONFIRMED' AND granted > 0) THEN 'order_refund_state' END
        ], NULL) AS wrong
    FROM facts f
) AS checked
WHERE wrong <> '{}' ORDER BY id LIMIT $1;

-- name: unit_checks
-- Each serial of an order that is sold or under way is one unit row of that order in that state, and
-- there are no other unit rows. Units that went back to the pool are their order's no longer.
WITH expected AS (
    SELECT l.order_id, l.variant_id, s.serial,
        CASE WHEN o.state IN ('RESERVED', 'PAYMENT_PENDING') THEN 'HELD' ELSE 'SOLD' END AS state
    FROM orders o JOIN order_lines l ON l.order_id = o.id CROSS JOIN unnest(l.serials) AS s (serial)
    WHERE (o.state IN ('RESERVED', 'PAYMENT_PENDING', 'CONFIRMED', 'PARTIALLY_REFUNDED', 'DISPUTED')
        OR (o.state IN ('REFUND_PENDING', 'REFUNDED') AND EXISTS (SELECT FROM order_transitions t
            WHERE t.order_id = o.id AND t.to_state = 'CONFIRMED')))
        AND NOT EXISTS (SELECT FROM refund_units r WHERE r.to_pool AND r.order_id = l.order_id
            AND r.variant_id = l.variant_id AND r.serial = s.serial)
)
SELECT CASE WHEN u.order_id IS NULL THEN 'unit_missing' WHEN e.order_id IS NULL THEN 'unit_unexpected'
        ELSE 'unit_state' END AS kind,
    COALESCE(e.order_id, u.order_id) AS order_id, v.sale_id,
    COALESCE(e.variant_id, u.variant_id) AS variant_id, COALESCE(e.serial, u.serial) AS serial,
    CASE WHEN e.state IS NULL THEN 'no unit row: the order does not have it'
        ELSE format('the unit %s for the order', e.state) END AS expected,
    COALESCE(u.state, 'none') AS found
FROM expected e
    FULL JOIN units u ON u.variant_id = e.variant_id AND u.serial = e.serial
        AND u.order_id = e.order_id
    LEFT JOIN variants v ON v.id = COALESCE(e.variant_id, u.variant_id)
WHERE e.state IS DISTINCT FROM u.state
ORDER BY 2, 4, 5 LIMIT $1;

-- name: sold_twice
-- Serials that stand in the lines of two orders that are sold or under way.
SELECT l.variant_id, v.sale_id, s.serial, array_agg(o.id ORDER BY o.id) AS order_ids
FROM orders o JOIN order_lines l ON l.order_id = o.id CROSS JOIN unnest(l.serials) AS s (serial)
    JOIN variants v ON v.id = l.variant_id
WHERE (o.state IN ('RESERVED', 'PAYMENT_PENDING', 'CONFIRMED', 'PARTIALLY_REFUNDED', 'DISPUTED')
    OR (o.state IN ('REFUND_PENDING', 'REFUNDED') AND EXISTS (SELECT FROM order_transitions t
        WHERE t.order_id = o.id AND t.to_state = 'CONFIRMED')))
    AND NOT EXISTS (SELECT FROM refund_units r WHERE r.to_pool AND r.order_id = l.order_id
        AND r.variant_id = l.variant_id AND r.serial = s.serial)
GROUP BY l.variant_id, v.sale_id, s.serial HAVING count(*) > 1
ORDER BY l.variant_id, s.serial LIMIT $1;
