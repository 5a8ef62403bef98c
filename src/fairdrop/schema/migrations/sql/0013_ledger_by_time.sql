-- The books at a time, and the journal of a period: rows are added in about the order of their times,
-- so a summary of each range of pages is enough, and costs the settlement next to nothing (O10).
CREATE INDEX ledger_entries_by_time ON ledger_entries USING brin (posted_at);
