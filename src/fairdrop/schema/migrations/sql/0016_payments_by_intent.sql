-- Payments that have no intent yet stand in no index. As rows of one, those of a rush stayed behind in it
-- when they got their intent, and a plan that was made while there were few read all of them.
ALTER TABLE payments DROP CONSTRAINT payments_intent_id_key;
CREATE UNIQUE INDEX payments_by_intent ON payments (intent_id) WHERE intent_id IS NOT NULL;
