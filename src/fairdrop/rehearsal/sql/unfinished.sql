-- name: unfinished
-- What is still under way in a sale. A payment that is only being made (CREATING) cannot take money
-- from anybody once its order has ended, since its buyer was never told where to pay.
SELECT
    (SELECT count(*) FROM orders WHERE sale_id = $1
        AND state IN ('RESERVED', 'PAYMENT_PENDING')) AS orders,
    (SELECT count(*) FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.sale_id = $1
        AND p.state IN ('OPEN', 'AUTHORISED')) AS payments,
    (SELECT count(*) FROM refunds r JOIN orders o ON o.id = r.order_id WHERE o.sale_id = $1
        AND r.state = 'PENDING') AS refunds,
    (SELECT count(*) FROM webhook_due d JOIN webhook_inbox w ON w.id = d.id
        JOIN orders o ON o.id = w.order_id WHERE o.sale_id = $1) AS events,
    (SELECT count(*) FROM order_mails m JOIN orders o ON o.id = m.order_id WHERE o.sale_id = $1
        AND m.state = 'PENDING') AS mails;
