-- What is behind a delivery that failed, in the same order, is not due before it.
UPDATE timeline_webhooks_delivery AS delivery
SET due_at = json_extract(first.value, '$.due_at')
FROM json_each(%(outcomes)s) AS first
WHERE json_extract(first.value, '$.state') = 'waiting'
    AND delivery.endpoint_id = json_extract(first.value, '$.endpoint')
    AND delivery.order_key = json_extract(first.value, '$.order_key')
    AND delivery.state = 'waiting'
    AND delivery.id > json_extract(first.value, '$.id')
    AND delivery.due_at < json_extract(first.value, '$.due_at')
