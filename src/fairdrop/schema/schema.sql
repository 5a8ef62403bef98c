-- Fairdrop's database, as a whole. Migrations lead to exactly this; a test compares the two.
--
-- What lives here is what must outlive the store: who bought what, what was paid, what is owed.
-- Amounts are integers in minor units of the row's currency. Times are UTC.

-- A sale: one drop, with its times, pace, limits and policies (W8, W9, W11, H4, H6, O7, O10).
CREATE TABLE sales (
    id               uuid PRIMARY KEY,
    slug             text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$'),
    name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 300),
    description      text NOT NULL DEFAULT '',
    timezone         text NOT NULL DEFAULT 'UTC',
    opens_at         timestamptz NOT NULL,
    closes_at        timestamptz CHECK (closes_at > opens_at),
    currency         text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    mode             text NOT NULL DEFAULT 'scheduled'
        CHECK (mode IN ('scheduled', 'lobby', 'drawing', 'open', 'paused', 'draining', 'closed')),
    rate_per_s       double precision NOT NULL DEFAULT 50 CHECK (rate_per_s > 0),
    cap              integer NOT NULL DEFAULT 1000 CHECK (cap > 0),
    claim_ttl_ms     bigint NOT NULL DEFAULT 60000 CHECK (claim_ttl_ms > 0),
    lease_ttl_ms     bigint NOT NULL DEFAULT 300000 CHECK (lease_ttl_ms > 0),
    hold_ttl_ms      bigint NOT NULL DEFAULT 600000 CHECK (hold_ttl_ms > 0),
    payment_ttl_ms   bigint NOT NULL DEFAULT 300000 CHECK (payment_ttl_ms > 0),
    order_limit      integer NOT NULL DEFAULT 4 CHECK (order_limit > 0),
    buyer_limit      integer NOT NULL DEFAULT 4 CHECK (buyer_limit > 0),
    fee_bps          integer NOT NULL DEFAULT 1000 CHECK (fee_bps BETWEEN 0 AND 10000),
    accept_late      boolean NOT NULL DEFAULT true,
    payment_attempts integer NOT NULL DEFAULT 3 CHECK (payment_attempts > 0),
    gateway          text NOT NULL DEFAULT 'sandbox',
    -- The epoch that all keys of the sale in the store carry. 0: never loaded.
    epoch            integer NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    -- Grows with each change; the store takes over what is newer than what it has.
    version          integer NOT NULL DEFAULT 1,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    -- automatic: the gateway takes the money when the buyer agrees. manual: it sets the money aside,
    -- and takes it when the units are secured; late agreement costs nobody anything (O4).
    capture          text NOT NULL DEFAULT 'automatic' CHECK (capture IN ('automatic', 'manual')),
    -- What the token bucket holds, as time at the pace: after a quiet moment so much may be called at
    -- once, besides the pace itself (W8).
    burst_ms         integer NOT NULL DEFAULT 250 CHECK (burst_ms >= 0),
    -- The line holds this many people for each unit that is not sold; 0: any number (W16).
    line_cap_factor  double precision NOT NULL DEFAULT 3 CHECK (line_cap_factor >= 0),
    -- The pace follows what the checkout can serve, between the two bounds (W10).
    adaptive         boolean NOT NULL DEFAULT false,
    rate_min_per_s   double precision NOT NULL DEFAULT 1 CHECK (rate_min_per_s > 0),
    rate_max_per_s   double precision NOT NULL DEFAULT 1000
        CHECK (rate_max_per_s >= rate_min_per_s),
    -- Slower than this, an answer of the checkout counts as slow.
    latency_target_ms integer NOT NULL DEFAULT 500 CHECK (latency_target_ms > 0),
    -- How long nobody is called after the store lost the line, so that early restorers pass nobody (W15).
    restore_grace_ms integer NOT NULL DEFAULT 60000 CHECK (restore_grace_ms >= 0),
    -- A position beyond all that were given out, and the last one served, a moment ago: a line that
    -- is built anew goes on behind them.
    line_mark        bigint NOT NULL DEFAULT 0 CHECK (line_mark >= 0),
    line_served      bigint NOT NULL DEFAULT 0 CHECK (line_served >= 0),
    -- Receipts of earlier epochs are worth nothing: the sale was reset (case 3).
    receipts_from    integer NOT NULL DEFAULT 1 CHECK (receipts_from >= 1),
    -- The lobby (W3): how long before the opening it opens (0: none), and how long after the opening
    -- arrivals still count as equal.
    lobby_ms         bigint NOT NULL DEFAULT 0 CHECK (lobby_ms >= 0),
    window_ms        bigint NOT NULL DEFAULT 100 CHECK (window_ms >= 0),
    -- The public randomness that goes into the draw (W4): none, a value that the operator enters once
    -- the list is closed, or the address of a drand chain; and whether to wait for it when it fails.
    beacon           text NOT NULL DEFAULT 'none'
        CHECK (beacon IN ('none', 'manual') OR beacon ~ '^https?://'),
    beacon_failure   text NOT NULL DEFAULT 'without'
        CHECK (beacon_failure IN ('without', 'wait')),
    -- The hash of the draw's seed, public from the moment the sale is made.
    commitment       text CHECK (commitment ~ '^[0-9a-f]{64}$'),
    -- Safety buffer: so many percent of each variant's units, rounded up, stay unsold (H9).
    buffer_percent   integer NOT NULL DEFAULT 0 CHECK (buffer_percent BETWEEN 0 AND 99),
    -- Where the stock comes from: as it was set up, or from the warehouse a minute before the opening.
    stock_source     text NOT NULL DEFAULT 'catalogue'
        CHECK (stock_source IN ('catalogue', 'warehouse')),
    -- What the line was last told to be, and the world with it: stopped because all is sold (W16).
    sold_out         boolean NOT NULL DEFAULT false
);

-- The draw of a sale's lobby (W4), made with the sale, so that its commitment is older than its crowd.
--   COMMITTED  the seed is secret; the lobby is not open yet, or may still grow
--   FIXED      the list of entries is closed and public, with its Merkle root
--   DRAWN      the beacon's value is known and the seed is public: the order can never change again
--   FILLED     everybody drawn stands in the line, and all files are public
CREATE TABLE draws (
    sale_id          uuid PRIMARY KEY REFERENCES sales,
    state            text NOT NULL DEFAULT 'COMMITTED'
        CHECK (state IN ('COMMITTED', 'FIXED', 'DRAWN', 'FILLED')),
    -- Secret until DRAWN: no answer and no log may carry it before.
    seed             text NOT NULL CHECK (seed ~ '^[0-9a-f]{64}$'),
    -- The epoch of the store whose lobby this is. Another epoch's lobby was lost with its store.
    epoch            integer,
    entries          integer CHECK (entries > 0),
    root             text CHECK (root ~ '^[0-9a-f]{64}$'),
    fixed_at         timestamptz,
    -- What went into the draw key; empty when nothing did. The proof is a drand
    -- beacon's: chain, round, signature.
    beacon_value     text,
    beacon_proof     jsonb,
    beacon_problem   text,
    drawn_at         timestamptz,
    filled_at        timestamptz,
    CHECK (state = 'COMMITTED' OR (root IS NOT NULL AND entries IS NOT NULL AND epoch IS NOT NULL
        AND fixed_at IS NOT NULL)),
    CHECK (state IN ('COMMITTED', 'FIXED') OR (beacon_value IS NOT NULL AND drawn_at IS NOT NULL))
);

-- The public files of a draw, in parts of about a megabyte: written once, never changed.
CREATE TABLE draw_files (
    sale_id uuid NOT NULL REFERENCES draws,
    name    text NOT NULL CHECK (name IN ('entries.txt', 'order.txt')),
    part    integer NOT NULL,
    body    bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (sale_id, name, part)
);

-- What is sold. Each variant (a size, a seat category) has its own stock and price.
CREATE TABLE variants (
    id          uuid PRIMARY KEY,
    sale_id     uuid NOT NULL REFERENCES sales,
    product     text NOT NULL CHECK (length(product) BETWEEN 1 AND 300),
    name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 300),
    price_minor bigint NOT NULL CHECK (price_minor >= 0),
    -- Units on sale now: free, held and sold together.
    quantity    integer NOT NULL CHECK (quantity >= 0),
    -- Serials 1..last_serial have been made; it never shrinks, so no serial is made twice.
    last_serial integer NOT NULL CHECK (last_serial >= quantity),
    -- Serials taken out of sale by a reduction; they are never sold.
    retired     integer[] NOT NULL DEFAULT '{}',
    position    integer NOT NULL DEFAULT 0
);
CREATE INDEX variants_by_sale ON variants (sale_id, position);

-- Units added to and taken out of a sale, each change once by its key (H9).
CREATE TABLE stock_changes (
    sale_id     uuid NOT NULL REFERENCES sales,
    request_key text NOT NULL,
    variant_id  uuid NOT NULL REFERENCES variants,
    delta       integer NOT NULL CHECK (delta <> 0),
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sale_id, request_key)
);

-- How the load from the warehouse stands, for the sale's present opening time (H9). It is tried until
-- it is loaded, or given up because the sale has opened.
CREATE TABLE stock_loads (
    sale_id     uuid PRIMARY KEY REFERENCES sales,
    opens_at    timestamptz NOT NULL,
    attempts    integer NOT NULL DEFAULT 0,
    tried_at    timestamptz,
    loaded_at   timestamptz,
    given_up_at timestamptz,
    last_error  text,
    -- Units that the warehouse had, over all variants.
    units       bigint
);

-- An order: the durable record, from the start of checkout on. Its id is the hold's id.
--   RESERVED            units held, nothing paid yet; ends at the deadline
--   PAYMENT_PENDING     the buyer was sent to the gateway; ends at the deadline
--   CONFIRMED           paid; the units are sold
--   PAYMENT_FAILED      the gateway declined for good; the units are free
--   EXPIRED             the deadline passed; the units are free
--   CANCELLED           the buyer gave up; the units are free
--   REFUND_PENDING      money is on its way back
--   REFUNDED            all of it is back
--   PARTIALLY_REFUNDED  some of it is back; the rest of the order stands
--   DISPUTED            the buyer's bank has taken the money back for now
CREATE TABLE orders (
    id             uuid PRIMARY KEY,
    sale_id        uuid NOT NULL REFERENCES sales,
    buyer          text NOT NULL,
    admission      text,
    state          text NOT NULL CHECK (state IN ('RESERVED', 'PAYMENT_PENDING', 'CONFIRMED',
        'PAYMENT_FAILED', 'EXPIRED', 'CANCELLED', 'REFUND_PENDING', 'REFUNDED',
        'PARTIALLY_REFUNDED', 'DISPUTED')),
    currency       text NOT NULL,
    subtotal_minor bigint NOT NULL CHECK (subtotal_minor >= 0),
    fee_minor      bigint NOT NULL CHECK (fee_minor >= 0),
    total_minor    bigint NOT NULL CHECK (total_minor = subtotal_minor + fee_minor),
    -- What the gateway has confirmed to be back. Money that never became revenue counts here too,
    -- so it may exceed the total when a wrong amount came in and was returned (case 33).
    refunded_minor bigint NOT NULL DEFAULT 0 CHECK (refunded_minor >= 0),
    email          text,
    name           text,
    deadline       timestamptz NOT NULL,
    declines       integer NOT NULL DEFAULT 0,
    -- Until then, one settler looks for new units because the money came late (O7); others wait.
    late_until     timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    -- Stays true on the way to CONFIRMED. No index looks at the state itself: paying and settling an
    -- order then touch no index at all (heap-only updates), which is half of their cost.
    uses_admission boolean NOT NULL
        GENERATED ALWAYS AS (state IN ('RESERVED', 'PAYMENT_PENDING', 'CONFIRMED')) STORED,
    -- Keyed hashes of the buyer's verified phone and payment method, never these themselves: a store that
    -- is rebuilt knows again who has an active reservation (H6, H8).
    verified       text[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 60);
-- One admission, one order (W13): a failed, expired or cancelled one lets the buyer try again.
CREATE UNIQUE INDEX orders_one_per_admission ON orders (sale_id, admission) WHERE uses_admission;
CREATE INDEX orders_by_sale ON orders (sale_id, id);

-- What happens to an order by itself, and when. Rows are deleted when nothing is to happen any more:
-- the tables that they point at keep their indexes small and their updates cheap.
--   DEADLINE  the sweep ends it, while it is RESERVED or PAYMENT_PENDING (H4)
--   PAYMENT   the reconciler asks the gateway, in case its webhook never comes (O8)
CREATE TABLE order_timers (
    order_id uuid NOT NULL,
    kind     text NOT NULL CHECK (kind IN ('DEADLINE', 'PAYMENT')),
    at       timestamptz NOT NULL,
    tries    integer NOT NULL DEFAULT 0,
    PRIMARY KEY (order_id, kind)
);
CREATE INDEX order_timers_due ON order_timers (kind, at);

-- What an order asked for, with the price shown, and the serials it has or had.
CREATE TABLE order_lines (
    order_id    uuid NOT NULL REFERENCES orders,
    variant_id  uuid NOT NULL REFERENCES variants,
    serials     integer[] NOT NULL CHECK (cardinality(serials) > 0),
    price_minor bigint NOT NULL CHECK (price_minor >= 0),
    PRIMARY KEY (order_id, variant_id)
);

-- Each unit that an order has now. The primary key is the last guard against selling a unit
-- twice (H2, H8): a row is deleted in the transaction that gives the unit back, and only there.
CREATE TABLE units (
    variant_id uuid NOT NULL,
    serial     integer NOT NULL CHECK (serial > 0),
    order_id   uuid NOT NULL,
    state      text NOT NULL CHECK (state IN ('HELD', 'SOLD')),
    PRIMARY KEY (variant_id, serial)
) WITH (fillfactor = 80);
-- Selling and giving back go by order. Found through the primary key, by variant and serial, a plan
-- made while the table was small read all units of a variant for each order.
CREATE INDEX units_by_order ON units (order_id);

-- The payment of an order at its gateway: one intent an order, made once (O5).
--   CREATING   our row is committed, the gateway may or may not have heard
--   OPEN       the intent exists; the buyer may pay it
--   AUTHORISED the bank has set the money aside and the units are secured: it is to be taken
--   SUCCEEDED  money came in
--   CLOSED     the intent can never bring money any more
CREATE TABLE payments (
    order_id      uuid PRIMARY KEY REFERENCES orders,
    gateway       text NOT NULL,
    intent_id     text,
    pay_url       text,
    state         text NOT NULL CHECK (state IN ('CREATING', 'OPEN', 'AUTHORISED', 'SUCCEEDED', 'CLOSED')),
    amount_minor  bigint NOT NULL CHECK (amount_minor >= 0),
    currency      text NOT NULL,
    -- What the gateway says came in; refunds never exceed it (O9).
    received_minor bigint NOT NULL DEFAULT 0 CHECK (received_minor >= 0),
    last_decline  text,
    created_at    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 60);
-- Those that have none yet stand in no index: as rows of one, those of a rush stayed behind in it when
-- they got their intent, and a plan that was made while there were few read all of them.
CREATE UNIQUE INDEX payments_by_intent ON payments (intent_id) WHERE intent_id IS NOT NULL;

-- Money to give back, and given back. The id is the idempotency key at the gateway.
--   PENDING    decided and booked; the gateway has to be told, and told again until it confirms
--   SUCCEEDED  the gateway has confirmed
CREATE TABLE refunds (
    id           uuid PRIMARY KEY,
    order_id     uuid NOT NULL REFERENCES orders,
    gateway      text NOT NULL,
    intent_id    text NOT NULL,
    amount_minor bigint NOT NULL CHECK (amount_minor > 0),
    currency     text NOT NULL,
    reason       text NOT NULL,
    state        text NOT NULL CHECK (state IN ('PENDING', 'SUCCEEDED')),
    attempts     integer NOT NULL DEFAULT 0,
    next_try_at  timestamptz,
    last_error   text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    -- The Idempotency-Key of the operator who asked, and a digest of what was asked (H3). NULL for
    -- money that goes back by itself (O7).
    request_key    text,
    request_digest text,
    -- What of the amount was booking fee; 0 for money that never became revenue.
    fee_minor    bigint NOT NULL DEFAULT 0
        CONSTRAINT refunds_fee_minor_check CHECK (fee_minor BETWEEN 0 AND amount_minor),
    -- The epoch of the store that is still to be told that units are free again; NULL when there are
    -- none, or it knows.
    pool_epoch   integer,
    UNIQUE (order_id, request_key)
);
CREATE INDEX refunds_due ON refunds (next_try_at) WHERE state = 'PENDING';
CREATE INDEX refunds_by_order ON refunds (order_id);
CREATE INDEX refunds_to_pool ON refunds (created_at) WHERE pool_epoch IS NOT NULL;

-- Units whose money went back: each once. Those that went to the pool are no longer their order's,
-- whose lines still name them; the others stay sold, to nobody else.
CREATE TABLE refund_units (
    refund_id  uuid NOT NULL REFERENCES refunds,
    order_id   uuid NOT NULL,
    variant_id uuid NOT NULL,
    serial     integer NOT NULL,
    to_pool    boolean NOT NULL,
    PRIMARY KEY (order_id, variant_id, serial)
);
CREATE INDEX refund_units_by_refund ON refund_units (refund_id);

-- What gateways told us, stored before they are answered (O6). Settled rows stay, as the proof
-- that a repeated delivery was seen; the mark is set in the transaction that does the work.
CREATE TABLE webhook_inbox (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    gateway      text NOT NULL,
    event_id     text NOT NULL,
    kind         text NOT NULL,
    order_id     uuid,
    intent_id    text NOT NULL,
    refund_id    text,
    amount_minor bigint NOT NULL,
    currency     text NOT NULL,
    detail       text,
    received_at  timestamptz NOT NULL DEFAULT now(),
    outcome      text,
    UNIQUE (gateway, event_id)
) WITH (fillfactor = 80);

-- The events that are not settled yet, and when to try. The row is deleted in the transaction that
-- settles the event; an event of an unknown order is put off and tried again.
CREATE TABLE webhook_due (
    id       bigint PRIMARY KEY,
    due_at   timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0
);
CREATE INDEX webhook_due_next ON webhook_due (due_at, id);

-- Every step of every order: from, to, cause, time (O2). Insert only.
CREATE TABLE order_transitions (
    order_id   uuid NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    from_state text,
    to_state   text NOT NULL,
    cause      text NOT NULL,
    PRIMARY KEY (order_id, at, to_state)
);

-- The ledger: double entry, insert only (O10). A posting is all rows of one (reference, kind):
-- what happened (kind) to what (an order's or a refund's id). The key makes booking twice impossible.
--   GATEWAY_CLEARING   what the gateway owes us (debit: it took money; credit: it gave money back)
--   SALES              revenue
--   FEES               booking fees
--   REFUND_LIABILITY   what we owe buyers
--   GATEWAY_COSTS, DISPUTES
CREATE TABLE ledger_entries (
    reference    uuid NOT NULL,
    kind         text NOT NULL,
    account      text NOT NULL CHECK (account IN ('GATEWAY_CLEARING', 'SALES', 'FEES',
        'REFUND_LIABILITY', 'GATEWAY_COSTS', 'DISPUTES')),
    order_id     uuid NOT NULL,
    sale_id      uuid NOT NULL,
    currency     text NOT NULL,
    debit_minor  bigint NOT NULL CHECK (debit_minor >= 0),
    credit_minor bigint NOT NULL CHECK (credit_minor >= 0),
    posted_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (reference, kind, account),
    CHECK ((debit_minor = 0) <> (credit_minor = 0))
);

-- Rows are added in about the order of their times: a summary of each range of pages is enough.
CREATE INDEX ledger_entries_by_time ON ledger_entries USING brin (posted_at);

CREATE FUNCTION ledger_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is insert only: % refused', TG_OP USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER ledger_no_change BEFORE UPDATE OR DELETE ON ledger_entries
    FOR EACH ROW EXECUTE FUNCTION ledger_refuse_change();
CREATE TRIGGER ledger_no_truncate BEFORE TRUNCATE ON ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change();

-- Each statement must balance every posting it adds to, per currency. A statement that may not
-- leave a posting out of balance can never lead to a transaction that does; it is checked over all
-- new rows at once, which a deferred trigger, fired row by row, cannot do.
CREATE FUNCTION ledger_check_balance() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bad record;
BEGIN
    SELECT reference, kind, currency, sum(debit_minor) AS debits, sum(credit_minor) AS credits
        INTO bad
        FROM added GROUP BY reference, kind, currency
        HAVING sum(debit_minor) <> sum(credit_minor) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'posting % % does not balance in %: debits %, credits %',
            bad.kind, bad.reference, bad.currency, bad.debits, bad.credits
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_balances AFTER INSERT ON ledger_entries
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_check_balance();

-- Events for the world outside, written in the transaction of the change they tell of (E1). The
-- columns are those that Debezium's outbox event router expects.
CREATE TABLE outbox (
    id            uuid NOT NULL,
    aggregatetype text NOT NULL,
    aggregateid   text NOT NULL,
    type          text NOT NULL,
    payload       jsonb NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    -- The order in which events were written: for one aggregate, that of its commits (E2).
    seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY
);

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

-- Mails about orders, and when to try (O12, O13). A row is written in the transaction that confirms the
-- order, so that no order is confirmed without its mail being due.
--   PENDING  to be sent; put off, twice as long each time, whenever somebody tries
--   SENT     a mail server has taken it
--   FAILED   refused for good, or tried for a day; an operator has to look
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

-- The first answers to requests that carry an Idempotency-Key, of one client each, for a day (H3). No
-- status yet: the request is under way, or whoever carried it out died.
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

-- What operators did (S3, W17).
CREATE TABLE operator_audit (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor   text NOT NULL,
    action  text NOT NULL,
    sale_id uuid,
    detail  jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX operator_audit_by_sale ON operator_audit (sale_id, id);

-- Rights: nobody, the owner's own role included, may change what was booked or audited.
REVOKE UPDATE, DELETE, TRUNCATE ON ledger_entries, order_transitions, operator_audit FROM PUBLIC;
DO $$ BEGIN
    EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON ledger_entries, order_transitions, operator_audit FROM %I',
        current_user);
END $$;
