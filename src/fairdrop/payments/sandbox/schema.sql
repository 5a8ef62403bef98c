-- The sandbox gateway's own books. One process writes them; one transaction carries many requests.
--
-- Nothing secret is stored: client secrets are derived from the gateway's secret key, card numbers
-- are forgotten as soon as they are judged.

CREATE TABLE IF NOT EXISTS intents (
  id                     TEXT PRIMARY KEY,
  status                 TEXT    NOT NULL DEFAULT 'requires_payment'
                         CHECK (status IN ('requires_payment', 'processing', 'requires_capture',
                           'succeeded', 'canceled')),
  amount_minor           INTEGER NOT NULL CHECK (amount_minor > 0),
  currency               TEXT    NOT NULL,
  reference              TEXT    NOT NULL,
  return_url             TEXT,
  idempotency_key        TEXT    NOT NULL UNIQUE,
  fingerprint            BLOB    NOT NULL,            -- of the request that the key came with
  amount_received_minor  INTEGER NOT NULL DEFAULT 0
                         CHECK (amount_received_minor IN (0, amount_minor)),
  amount_refunded_minor  INTEGER NOT NULL DEFAULT 0   -- never above what was received: the table refuses
                         CHECK (amount_refunded_minor BETWEEN 0 AND amount_received_minor),
  last_decline           TEXT,
  created_ms             INTEGER NOT NULL,
  capture                TEXT    NOT NULL CHECK (capture IN ('automatic', 'manual')),
  settle_at_ms           INTEGER,                     -- while processing: when the bank decides,
  settle_decline         TEXT,                        -- how (NULL: it pays),
  settle_mischief        BLOB,                        -- and what then happens to the webhook
  CHECK ((status = 'processing') = (settle_at_ms IS NOT NULL)),
  CHECK ((status = 'succeeded') = (amount_received_minor > 0)),
  CHECK (capture = 'manual' OR status <> 'requires_capture')
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS intents_by_reference ON intents (reference);
CREATE INDEX IF NOT EXISTS intents_processing ON intents (settle_at_ms) WHERE settle_at_ms IS NOT NULL;

-- Money taken. An intent is charged at most once: the table refuses a second row.
-- seq grows in commit order, which makes it a cursor that never skips.
CREATE TABLE IF NOT EXISTS charges (
  seq           INTEGER PRIMARY KEY,
  id            TEXT    NOT NULL,
  intent        TEXT    NOT NULL UNIQUE REFERENCES intents (id),
  reference     TEXT    NOT NULL,
  amount_minor  INTEGER NOT NULL,
  currency      TEXT    NOT NULL,
  created_ms    INTEGER NOT NULL
) STRICT;

-- Money given back. One row per refund id of the merchant and per idempotency key.
CREATE TABLE IF NOT EXISTS refunds (
  seq              INTEGER PRIMARY KEY,
  id               TEXT    NOT NULL,
  intent           TEXT    NOT NULL REFERENCES intents (id),
  reference        TEXT    NOT NULL,
  amount_minor     INTEGER NOT NULL CHECK (amount_minor > 0),
  currency         TEXT    NOT NULL,
  idempotency_key  TEXT    NOT NULL UNIQUE,
  created_ms       INTEGER NOT NULL,
  UNIQUE (intent, reference)
) STRICT;

-- Webhooks not yet accepted by the merchant. The table is the queue: a row goes when a 2xx came,
-- so whatever dies in between is sent again. Copies of one event share its id.
CREATE TABLE IF NOT EXISTS deliveries (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: `behind` points at it
  event       TEXT    NOT NULL,
  intent      TEXT    NOT NULL,
  body        BLOB    NOT NULL,
  created_ms  INTEGER NOT NULL,
  due_ms      INTEGER NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0,
  held        INTEGER NOT NULL DEFAULT 0,         -- 1: lets the next event of its intent go first
  behind      INTEGER                             -- the delivery that has to be accepted before it
) STRICT;

CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (due_ms) WHERE behind IS NULL;
CREATE INDEX IF NOT EXISTS deliveries_held ON deliveries (intent) WHERE held = 1;
CREATE INDEX IF NOT EXISTS deliveries_behind ON deliveries (behind) WHERE behind IS NOT NULL;

-- The gateway-wide mischief, as last set. One row.
CREATE TABLE IF NOT EXISTS mischief (
  one       INTEGER PRIMARY KEY CHECK (one = 1),
  defaults  BLOB NOT NULL
) STRICT;
