ALTER TABLE sales ADD COLUMN sold_out boolean NOT NULL DEFAULT false;
