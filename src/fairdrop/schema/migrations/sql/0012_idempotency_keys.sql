-- The first answers to requests that carry an Idempotency-Key (H3).
CREATE TABLE idempotency_keys (
    client       text NOT NULL,
    key          text NOT NULL,
    fingerprint  text NOT NULL,
    begun_at     timestamptz NOT NULL DEFAULT now(),
    status       integer,
    content_type text,
    body         bytea,
    PRIMARY KEY (client, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (begun_at);
