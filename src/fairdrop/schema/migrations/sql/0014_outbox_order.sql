-- Events are published oldest first, by the order in which they were written. The event's own id
-- stays what it was for consumers; nobody looks an event up by it here.
ALTER TABLE outbox DROP CONSTRAINT outbox_pkey;
ALTER TABLE outbox ADD COLUMN seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY;
