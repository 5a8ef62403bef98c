-- The pace of the line, its length, and what gives people their places back after the store lost them
-- (W8, W10, W15, W16).
ALTER TABLE sales
    ADD COLUMN burst_ms integer NOT NULL DEFAULT 250 CHECK (burst_ms >= 0),
    ADD COLUMN line_cap_factor double precision NOT NULL DEFAULT 3 CHECK (line_cap_factor >= 0),
    ADD COLUMN adaptive boolean NOT NULL DEFAULT false,
    ADD COLUMN rate_min_per_s double precision NOT NULL DEFAULT 1 CHECK (rate_min_per_s > 0),
    ADD COLUMN rate_max_per_s double precision NOT NULL DEFAULT 1000
        CHECK (rate_max_per_s >= rate_min_per_s),
    ADD COLUMN latency_target_ms integer NOT NULL DEFAULT 500 CHECK (latency_target_ms > 0),
    ADD COLUMN restore_grace_ms integer NOT NULL DEFAULT 60000 CHECK (restore_grace_ms >= 0),
    ADD COLUMN line_mark bigint NOT NULL DEFAULT 0 CHECK (line_mark >= 0),
    ADD COLUMN line_served bigint NOT NULL DEFAULT 0 CHECK (line_served >= 0),
    ADD COLUMN receipts_from integer NOT NULL DEFAULT 1 CHECK (receipts_from >= 1);
