-- Stock that changes while a sale runs, and that comes from a warehouse (H9).
ALTER TABLE sales ADD COLUMN stock_source text NOT NULL DEFAULT 'catalogue'
    CHECK (stock_source IN ('catalogue', 'warehouse'));
CREATE TABLE stock_changes (
    sale_id     uuid NOT NULL REFERENCES sales,
    request_key text NOT NULL,
    variant_id  uuid NOT NULL REFERENCES variants,
    delta       integer NOT NULL CHECK (delta <> 0),
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sale_id, request_key)
);
CREATE TABLE stock_loads (
    sale_id     uuid PRIMARY KEY REFERENCES sales,
    opens_at    timestamptz NOT NULL,
    attempts    integer NOT NULL DEFAULT 0,
    tried_at    timestamptz,
    loaded_at   timestamptz,
    given_up_at timestamptz,
    last_error  text,
    units       bigint
);
