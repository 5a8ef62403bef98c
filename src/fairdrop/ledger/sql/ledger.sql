-- name: balances
-- What each account has had, per currency, up to a moment.
SELECT account, currency, sum(debit_minor)::bigint AS debits, sum(credit_minor)::bigint AS credits
FROM ledger_entries WHERE ($1::uuid IS NULL OR sale_id = $1)
    AND ($2::timestamptz IS NULL OR posted_at <= $2)
GROUP BY account, currency ORDER BY account, currency;

-- name: entries_of
-- Everything booked under these references.
SELECT reference, kind, account, currency, debit_minor, credit_minor, posted_at
FROM ledger_entries WHERE reference = ANY($1::uuid[])
ORDER BY posted_at, reference, kind, debit_minor DESC, account;

-- name: journal
-- Every entry of a period, posting by posting, oldest first.
SELECT reference::text, kind, account, currency, debit_minor, credit_minor, posted_at,
    order_id::text, sale_id::text
FROM ledger_entries
WHERE ($1::uuid IS NULL OR sale_id = $1) AND ($2::timestamptz IS NULL OR posted_at >= $2)
    AND ($3::timestamptz IS NULL OR posted_at <= $3)
ORDER BY posted_at, reference, kind, debit_minor DESC, account;
