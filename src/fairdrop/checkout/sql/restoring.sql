-- name: admissions_used
-- For each (sale, admission) in the order given: whether it is used up, and its order under way (W15).
SELECT COALESCE(o.state = 'CONFIRMED', false) OR COALESCE(r.outcome = 'completed', false) AS over,
    CASE WHEN o.state IN ('RESERVED', 'PAYMENT_PENDING') THEN o.id::text END AS order_id
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS a (sale_id, admission, number)
LEFT JOIN orders o ON o.sale_id = a.sale_id AND o.admission = a.admission AND o.uses_admission
LEFT JOIN admission_reports r ON r.sale_id = a.sale_id AND r.admission = a.admission
ORDER BY a.number;
