-- name: report
-- What a checkout says of an admission. The first report stays; a failed one may still be completed.
-- Gives the row as it is afterwards.
INSERT INTO admission_reports AS r (sale_id, admission, buyer, epoch, outcome, reference)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (sale_id, admission) DO UPDATE SET
    outcome = CASE WHEN r.outcome = 'failed' THEN excluded.outcome ELSE r.outcome END,
    reference = CASE WHEN r.outcome = 'failed' AND excluded.outcome = 'completed'
        THEN excluded.reference ELSE r.reference END
RETURNING outcome, reference, buyer, reported_at, told_at IS NOT NULL AS told;

-- name: told
-- The store has ended these admissions.
UPDATE admission_reports SET told_at = now()
WHERE sale_id = $1 AND admission = ANY($2::text[]) AND told_at IS NULL;

-- name: untold
-- Reports that the store has yet to hear of, the oldest first. Those of the last moments are left to
-- whoever made them. A report of an earlier epoch needs no telling: its admission is gone.
SELECT r.sale_id, r.admission, r.buyer, r.outcome, r.epoch, s.epoch AS epoch_now
FROM admission_reports r JOIN sales s ON s.id = r.sale_id
WHERE r.told_at IS NULL AND r.reported_at < now() - interval '1 second'
ORDER BY r.reported_at LIMIT $1;
