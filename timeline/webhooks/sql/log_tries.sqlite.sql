-- The lines of the log of deliveries that were written: see record.
INSERT INTO timeline_webhooks_attempt (delivery_id, number, at, duration_ms, status, answer, error)
SELECT
    json_extract(value, '$.id'), json_extract(value, '$.attempts'), %(now)s, json_extract(value, '$.duration_ms'),
    json_extract(value, '$.status'), json_extract(value, '$.answer'), json_extract(value, '$.error')
FROM json_each(%(outcomes)s)
