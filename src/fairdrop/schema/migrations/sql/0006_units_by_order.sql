-- Selling and giving back go by order. Found through the primary key, by variant and serial, a plan
-- made while the table was small read all units of a variant for each order.
CREATE INDEX units_by_order ON units (order_id);
