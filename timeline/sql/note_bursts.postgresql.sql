-- Write which event was the last of the burst that a row stands for, and what it stands for. The rows are locked.
UPDATE timeline_scheduledtask AS task
SET cause_id = new.cause, payload = new.payload
FROM unnest(%(ids)s::uuid[], %(causes)s::uuid[], %(payloads)s::jsonb[]) AS new(id, cause, payload)
WHERE task.id = new.id
