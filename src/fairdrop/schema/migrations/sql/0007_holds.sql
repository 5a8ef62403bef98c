-- The safety buffer of a sale (H9), and what lets a rebuilt store know the phones and payment methods
-- of orders under way again (H6, H8).
ALTER TABLE sales ADD COLUMN buffer_percent integer NOT NULL DEFAULT 0
    CHECK (buffer_percent BETWEEN 0 AND 99);
ALTER TABLE orders ADD COLUMN verified text[] NOT NULL DEFAULT '{}';
