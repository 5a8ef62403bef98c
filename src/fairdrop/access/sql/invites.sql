-- name: policy_of
-- Who may join; has_invites tells whether anybody need be looked up at all.
SELECT COALESCE(a.entry, 'open') AS entry, a.priority_opens_at,
    EXISTS (SELECT FROM invites i WHERE i.sale_id = s.id) AS has_invites
FROM sales s LEFT JOIN sale_access a ON a.sale_id = s.id WHERE s.id = $1;

-- name: set_policy
INSERT INTO sale_access (sale_id, entry, priority_opens_at) VALUES ($1, $2, $3)
ON CONFLICT (sale_id) DO UPDATE SET entry = excluded.entry,
    priority_opens_at = excluded.priority_opens_at, updated_at = now();

-- name: add_invites
-- New invitations; those that are there already stay as they are, unless they were revoked.
INSERT INTO invites AS i (sale_id, kind, digest, tier, uses_max)
SELECT $1, $2, digest, $4, $5 FROM unnest($3::bytea[]) AS digest
ON CONFLICT (sale_id, kind, digest) DO UPDATE SET revoked_at = NULL, tier = excluded.tier,
    uses_max = GREATEST(excluded.uses_max, i.used)
    WHERE i.revoked_at IS NOT NULL
RETURNING 1;

-- name: revoke_invites
-- They let nobody in any more, nor back in. Places given stay.
UPDATE invites SET revoked_at = now()
WHERE sale_id = $1 AND kind = $2 AND digest = ANY($3::bytea[]) AND revoked_at IS NULL RETURNING 1;

-- name: count_invites
SELECT kind, tier, count(*)::integer AS invites, sum(uses_max)::integer AS uses_max,
    sum(used)::integer AS used, (count(*) FILTER (WHERE revoked_at IS NOT NULL))::integer AS revoked
FROM invites WHERE sale_id = $1 GROUP BY kind, tier ORDER BY kind, tier;

-- name: tiers_of
-- What visitors have used, and which of them are named themselves.
SELECT u.visitor, i.tier, false AS named
FROM invite_uses u JOIN invites i USING (sale_id, kind, digest)
WHERE u.sale_id = $1 AND u.visitor = ANY($2::text[]) AND i.revoked_at IS NULL
UNION ALL
SELECT v.visitor, i.tier, true
FROM unnest($2::text[], $3::bytea[]) AS v (visitor, digest)
JOIN invites i ON i.sale_id = $1 AND i.kind = 'buyer' AND i.digest = v.digest
WHERE i.revoked_at IS NULL;

-- name: lock_invite
-- The invitation, for the length of the transaction.
SELECT tier, used < uses_max AS is_left FROM invites
WHERE sale_id = $1 AND kind = $2 AND digest = $3 AND revoked_at IS NULL FOR UPDATE;

-- name: uses_this
-- Whether the one that this visitor uses is this one; NULL without any. Asked after the lock: what a
-- statement sees is settled when it begins, and this one has to see what was done before the lock came.
SELECT digest = $3 AND kind = $2 FROM invite_uses WHERE sale_id = $1 AND visitor = $4;

-- name: note_use
INSERT INTO invite_uses (sale_id, kind, digest, visitor) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING RETURNING 1;

-- name: count_use
UPDATE invites SET used = used + 1 WHERE sale_id = $1 AND kind = $2 AND digest = $3;

-- name: insert_audit
INSERT INTO operator_audit (actor, action, sale_id, detail) VALUES ($1, $2, $3, $4);
