-- Who may join a sale, and when, beyond the sale's own times (W19). No row: everybody, at the opening.
CREATE TABLE sale_access (
    sale_id           uuid PRIMARY KEY REFERENCES sales,
    -- open: everybody; invited: only who has an invitation
    entry             text NOT NULL DEFAULT 'open' CHECK (entry IN ('open', 'invited')),
    -- From then on people with priority may join, ahead of everybody. NULL: from the lobby on.
    priority_opens_at timestamptz,
    updated_at        timestamptz NOT NULL DEFAULT now()
);

-- Invitations: keyed hashes of codes, of e-mail addresses and of named buyers; what they are made of is
-- kept nowhere (W19).
--   invited   may join a sale for the invited
--   priority  besides, may join early and stands ahead of everybody else
--   bypass    besides, stands ahead of those with priority: the next to be called, below the cap
CREATE TABLE invites (
    sale_id    uuid NOT NULL REFERENCES sales,
    kind       text NOT NULL CHECK (kind IN ('code', 'email', 'buyer')),
    digest     bytea NOT NULL CHECK (length(digest) = 32),
    tier       text NOT NULL CHECK (tier IN ('invited', 'priority', 'bypass')),
    uses_max   integer NOT NULL DEFAULT 1 CHECK (uses_max > 0),
    used       integer NOT NULL DEFAULT 0 CHECK (used BETWEEN 0 AND uses_max),
    revoked_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sale_id, kind, digest)
);

-- Who used which invitation, and when. A visitor uses one in a sale, and the same one ever after.
CREATE TABLE invite_uses (
    sale_id uuid NOT NULL,
    visitor text NOT NULL CHECK (length(visitor) BETWEEN 1 AND 64),
    kind    text NOT NULL,
    digest  bytea NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sale_id, visitor),
    FOREIGN KEY (sale_id, kind, digest) REFERENCES invites
);
