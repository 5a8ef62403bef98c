-- Sales whose payments are authorised first and taken when the units are secured (O4).
ALTER TABLE sales ADD COLUMN capture text NOT NULL DEFAULT 'automatic'
    CHECK (capture IN ('automatic', 'manual'));
ALTER TABLE payments DROP CONSTRAINT payments_state_check;
ALTER TABLE payments ADD CONSTRAINT payments_state_check
    CHECK (state IN ('CREATING', 'OPEN', 'AUTHORISED', 'SUCCEEDED', 'CLOSED'));
