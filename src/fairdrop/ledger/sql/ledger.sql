-- name: balances
-- What each account has had, per currency.
SELECT account, currency, sum(debit_minor)::bigint AS debits, sum(credit_minor)::bigint AS credits
FROM ledger_entries WHERE $1::uuid IS NULL OR sale_id = $1
GROUP BY account, currency ORDER BY account, currency;

-- name: entries_of
-- Everything booked under these references.
SELECT reference, kind, account, currency, debit_minor, credit_minor, posted_at
FROM ledger_entries WHERE reference = ANY($1::uuid[])
ORDER BY posted_at, reference, kind, debit_minor DESC, account;
