-- Refunds of single units, with what of them was fee, and units that go back to the pool (O9).
ALTER TABLE refunds ADD COLUMN fee_minor bigint NOT NULL DEFAULT 0;
UPDATE refunds r SET fee_minor = e.debit_minor FROM ledger_entries e
    WHERE e.reference = r.id AND e.kind = 'REFUND_OWED' AND e.account = 'FEES';
ALTER TABLE refunds ADD COLUMN pool_epoch integer;
ALTER TABLE refunds ADD CONSTRAINT refunds_fee_minor_check
    CHECK (fee_minor BETWEEN 0 AND amount_minor);
CREATE INDEX refunds_to_pool ON refunds (created_at) WHERE pool_epoch IS NOT NULL;

CREATE TABLE refund_units (
    refund_id  uuid NOT NULL REFERENCES refunds,
    order_id   uuid NOT NULL,
    variant_id uuid NOT NULL,
    serial     integer NOT NULL,
    to_pool    boolean NOT NULL,
    PRIMARY KEY (order_id, variant_id, serial)
);
CREATE INDEX refund_units_by_refund ON refund_units (refund_id);
