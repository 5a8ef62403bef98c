-- Our side of what gateways have in their own records.

-- name: paid_orders
-- The orders that charges refer to.
SELECT o.id, o.sale_id, o.state, o.currency, o.total_minor,
    o.state IN ('CONFIRMED', 'PARTIALLY_REFUNDED', 'DISPUTED')
        OR (o.state IN ('REFUND_PENDING', 'REFUNDED') AND EXISTS (SELECT FROM order_transitions t
            WHERE t.order_id = o.id AND t.to_state = 'CONFIRMED')) AS sold,
    COALESCE(p.received_minor, 0) AS received_minor,
    COALESCE((SELECT sum(r.amount_minor) FROM refunds r WHERE r.order_id = o.id), 0)::bigint
        AS granted_minor
FROM orders o LEFT JOIN payments p ON p.order_id = o.id WHERE o.id = ANY($1::uuid[]);

-- name: sold_orders
-- A page of the sold orders that were paid at a gateway, in the order of their ids.
SELECT o.id, o.sale_id, o.total_minor, o.currency FROM orders o JOIN payments p ON p.order_id = o.id
WHERE p.gateway = $1 AND o.total_minor > 0 AND ($2::uuid IS NULL OR o.id > $2)
    AND (o.state IN ('CONFIRMED', 'PARTIALLY_REFUNDED', 'DISPUTED')
        OR (o.state IN ('REFUND_PENDING', 'REFUNDED') AND EXISTS (SELECT FROM order_transitions t
            WHERE t.order_id = o.id AND t.to_state = 'CONFIRMED')))
ORDER BY o.id LIMIT $3;

-- name: refunds_by_id
SELECT id, order_id, amount_minor, currency, state FROM refunds WHERE id = ANY($1::uuid[]);

-- name: refunds_done
-- A page of the refunds that a gateway is said to have paid, in the order of their ids.
SELECT id, order_id, amount_minor FROM refunds
WHERE gateway = $1 AND state = 'SUCCEEDED' AND ($2::uuid IS NULL OR id > $2)
ORDER BY id LIMIT $3;

-- name: gateways_used
SELECT gateway FROM payments UNION SELECT gateway FROM refunds ORDER BY gateway;
