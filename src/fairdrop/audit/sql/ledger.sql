-- What the books have to say, and whether they do.

-- name: unbalanced
SELECT reference, kind, currency, sum(debit_minor)::bigint AS debits_minor,
    sum(credit_minor)::bigint AS credits_minor
FROM ledger_entries GROUP BY reference, kind, currency
HAVING sum(debit_minor) <> sum(credit_minor) ORDER BY reference, kind LIMIT $1;

-- name: entry_checks
-- A sold order has its PAYMENT; money that never became revenue has its UNEARNED; a refund has what
-- it owes (REFUND_OWED) and, once the gateway has paid, REFUND_PAID. Nothing else is booked. How a
-- refund is split between sales and fees is checked by refund_shares.
WITH confirmed AS (
    SELECT DISTINCT order_id FROM order_transitions WHERE to_state = 'CONFIRMED'
), facts AS (
    SELECT o.*, o.state IN ('CONFIRMED', 'PARTIALLY_REFUNDED', 'DISPUTED')
        OR (o.state IN ('REFUND_PENDING', 'REFUNDED') AND c.order_id IS NOT NULL) AS sold
    FROM orders o LEFT JOIN confirmed c ON c.order_id = o.id
), expected AS (
    SELECT f.id AS reference, e.kind, e.account, f.id AS order_id, f.currency, e.debit, e.credit
    FROM facts f CROSS JOIN LATERAL (VALUES
        ('PAYMENT', 'GATEWAY_CLEARING', f.total_minor, 0::bigint),
        ('PAYMENT', 'SALES', 0, f.subtotal_minor),
        ('PAYMENT', 'FEES', 0, f.fee_minor)) AS e (kind, account, debit, credit)
    WHERE f.sold AND e.debit + e.credit > 0
    UNION ALL
    SELECT r.id, e.kind, e.account, r.order_id, r.currency, e.debit, e.credit
    FROM refunds r JOIN facts f ON f.id = r.order_id CROSS JOIN LATERAL (VALUES
        ('UNEARNED', 'GATEWAY_CLEARING', r.amount_minor, 0::bigint, NOT f.sold),
        ('UNEARNED', 'REFUND_LIABILITY', 0, r.amount_minor, NOT f.sold),
        ('REFUND_OWED', 'REFUND_LIABILITY', 0, r.amount_minor, f.sold),
        ('REFUND_PAID', 'REFUND_LIABILITY', r.amount_minor, 0, r.state = 'SUCCEEDED'),
        ('REFUND_PAID', 'GATEWAY_CLEARING', 0, r.amount_minor, r.state = 'SUCCEEDED'))
        AS e (kind, account, debit, credit, due)
    WHERE e.due
), booked AS (
    SELECT * FROM ledger_entries
    WHERE NOT (kind = 'REFUND_OWED' AND account IN ('SALES', 'FEES'))
)
SELECT CASE WHEN b.reference IS NULL THEN 'entry_missing' WHEN e.reference IS NULL
        THEN 'entry_unexpected' ELSE 'entry_amount' END AS kind,
    COALESCE(e.reference, b.reference) AS reference, COALESCE(e.order_id, b.order_id) AS order_id,
    CASE WHEN e.reference IS NULL THEN 'nothing' ELSE format('%s %s: debit %s, credit %s %s', e.kind,
        e.account, e.debit, e.credit, e.currency) END AS expected,
    CASE WHEN b.reference IS NULL THEN 'nothing' ELSE format('%s %s: debit %s, credit %s %s', b.kind,
        b.account, b.debit_minor, b.credit_minor, b.currency) END AS found
FROM expected e FULL JOIN booked b
    ON b.reference = e.reference AND b.kind = e.kind AND b.account = e.account
WHERE (e.debit, e.credit, e.currency) IS DISTINCT FROM (b.debit_minor, b.credit_minor, b.currency)
ORDER BY 2, 4, 5 LIMIT $1;

-- name: refund_shares
-- What a refund takes back from fees is what it says, and no order's fees are taken back twice.
WITH owed AS (
    SELECT reference, COALESCE(sum(debit_minor) FILTER (WHERE account = 'FEES'), 0)::bigint AS fees
    FROM ledger_entries WHERE kind = 'REFUND_OWED' GROUP BY reference
)
SELECT r.order_id, r.fee_minor AS expected_minor, w.fees AS found_minor
FROM owed w JOIN refunds r ON r.id = w.reference WHERE w.fees <> r.fee_minor
UNION ALL
SELECT o.id, o.fee_minor, sum(r.fee_minor)::bigint FROM refunds r JOIN orders o ON o.id = r.order_id
GROUP BY o.id, o.fee_minor HAVING sum(r.fee_minor) > o.fee_minor
ORDER BY 1 LIMIT $1;

-- name: revenue
-- What was ever credited to sales and fees, beside the sums over sold orders; by sale and currency.
WITH confirmed AS (
    SELECT DISTINCT order_id FROM order_transitions WHERE to_state = 'CONFIRMED'
), sums AS (
    SELECT o.sale_id, o.currency, sum(o.subtotal_minor) AS sales, sum(o.fee_minor) AS fees
    FROM orders o LEFT JOIN confirmed c ON c.order_id = o.id
    WHERE o.state IN ('CONFIRMED', 'PARTIALLY_REFUNDED', 'DISPUTED')
        OR (o.state IN ('REFUND_PENDING', 'REFUNDED') AND c.order_id IS NOT NULL)
    GROUP BY o.sale_id, o.currency
), booked AS (
    SELECT sale_id, currency,
        COALESCE(sum(credit_minor) FILTER (WHERE account = 'SALES'), 0) AS sales,
        COALESCE(sum(credit_minor) FILTER (WHERE account = 'FEES'), 0) AS fees
    FROM ledger_entries GROUP BY sale_id, currency
)
SELECT COALESCE(s.sale_id, b.sale_id) AS sale_id, a.account,
    a.expected::bigint AS expected_minor, a.found::bigint AS found_minor,
    COALESCE(s.currency, b.currency) AS currency
FROM sums s FULL JOIN booked b ON b.sale_id = s.sale_id AND b.currency = s.currency
    CROSS JOIN LATERAL (VALUES
        ('SALES', COALESCE(s.sales, 0), COALESCE(b.sales, 0)),
        ('FEES', COALESCE(s.fees, 0), COALESCE(b.fees, 0))) AS a (account, expected, found)
WHERE a.expected <> a.found ORDER BY 1, 2 LIMIT $1;
