-- The lobby and its draw (W3, W4). Defaults are those of a sale without a lobby, so that sales which
-- are there, and code that does not know of lobbies yet, go on as before.
ALTER TABLE sales
    ADD COLUMN lobby_ms bigint NOT NULL DEFAULT 0 CHECK (lobby_ms >= 0),
    ADD COLUMN window_ms bigint NOT NULL DEFAULT 100 CHECK (window_ms >= 0),
    ADD COLUMN beacon text NOT NULL DEFAULT 'none'
        CHECK (beacon IN ('none', 'manual') OR beacon ~ '^https?://'),
    ADD COLUMN beacon_failure text NOT NULL DEFAULT 'without'
        CHECK (beacon_failure IN ('without', 'wait')),
    ADD COLUMN commitment text CHECK (commitment ~ '^[0-9a-f]{64}$');

CREATE TABLE draws (
    sale_id          uuid PRIMARY KEY REFERENCES sales,
    state            text NOT NULL DEFAULT 'COMMITTED'
        CHECK (state IN ('COMMITTED', 'FIXED', 'DRAWN', 'FILLED')),
    seed             text NOT NULL CHECK (seed ~ '^[0-9a-f]{64}$'),
    epoch            integer,
    entries          integer CHECK (entries > 0),
    root             text CHECK (root ~ '^[0-9a-f]{64}$'),
    fixed_at         timestamptz,
    beacon_value     text,
    beacon_proof     jsonb,
    beacon_problem   text,
    drawn_at         timestamptz,
    filled_at        timestamptz,
    CHECK (state = 'COMMITTED' OR (root IS NOT NULL AND entries IS NOT NULL AND epoch IS NOT NULL
        AND fixed_at IS NOT NULL)),
    CHECK (state IN ('COMMITTED', 'FIXED') OR (beacon_value IS NOT NULL AND drawn_at IS NOT NULL))
);

CREATE TABLE draw_files (
    sale_id uuid NOT NULL REFERENCES draws,
    name    text NOT NULL CHECK (name IN ('entries.txt', 'order.txt')),
    part    integer NOT NULL,
    body    bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (sale_id, name, part)
);
