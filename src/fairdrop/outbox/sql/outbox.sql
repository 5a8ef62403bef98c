-- name: insert_events
-- Events, in the transaction of the change that they tell of (E1).
INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload)
SELECT id, 'order', aggregateid, type, payload::jsonb
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS e (id, aggregateid, type, payload);
