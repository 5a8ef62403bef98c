-- How a checkout of the shop's own ended, one row an admission (W20). The row comes first, the store is
-- told after it; the key makes one admission one order (W13).
CREATE TABLE admission_reports (
    sale_id     uuid NOT NULL REFERENCES sales,
    admission   text NOT NULL CHECK (length(admission) BETWEEN 1 AND 64),
    buyer       text NOT NULL CHECK (length(buyer) BETWEEN 1 AND 64),
    -- The epoch of the admission: one of an earlier epoch is gone from the store anyway.
    epoch       integer NOT NULL,
    outcome     text NOT NULL CHECK (outcome IN ('completed', 'failed')),
    -- The shop's own name of the order; empty when it gave none.
    reference   text NOT NULL DEFAULT '' CHECK (length(reference) <= 200),
    reported_at timestamptz NOT NULL DEFAULT now(),
    -- When the store had ended the admission. NULL: it is yet to hear of it.
    told_at     timestamptz,
    PRIMARY KEY (sale_id, admission)
);
CREATE INDEX admission_reports_untold ON admission_reports (reported_at) WHERE told_at IS NULL;
