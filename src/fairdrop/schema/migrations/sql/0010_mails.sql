CREATE TABLE order_mails (
    order_id    uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('CONFIRMATION')),
    state       text NOT NULL DEFAULT 'PENDING' CHECK (state IN ('PENDING', 'SENT', 'FAILED')),
    attempts    integer NOT NULL DEFAULT 0,
    next_try_at timestamptz NOT NULL DEFAULT now(),
    last_error  text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    sent_at     timestamptz,
    PRIMARY KEY (order_id, kind)
);
CREATE INDEX order_mails_due ON order_mails (next_try_at) WHERE state = 'PENDING';
CREATE INDEX order_mails_failed ON order_mails (created_at) WHERE state = 'FAILED';
