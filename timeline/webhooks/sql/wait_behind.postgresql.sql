-- What is behind a delivery that failed, in the same order, is not due before it.
UPDATE timeline_webhooks_delivery AS delivery
SET due_at = first.due_at
FROM json_to_recordset(%(outcomes)s::json) AS first(
    id bigint, endpoint uuid, order_key text, state text, due_at timestamptz
)
WHERE first.state = 'waiting'
    AND delivery.endpoint_id = first.endpoint
    AND delivery.order_key = first.order_key
    AND delivery.state = 'waiting'
    AND delivery.id > first.id
    AND delivery.due_at < first.due_at
