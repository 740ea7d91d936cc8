-- Writes what came of deliveries. What is not given back was somebody else's by then. Their lines of the log: see log_tries.
UPDATE timeline_webhooks_delivery AS delivery
SET state = json_extract(outcome.value, '$.state'),
    code = json_extract(outcome.value, '$.code'),
    attempts = json_extract(outcome.value, '$.attempts'),
    due_at = json_extract(outcome.value, '$.due_at'),
    ended_at = json_extract(outcome.value, '$.ended_at'),
    status = json_extract(outcome.value, '$.status'),
    error = json_extract(outcome.value, '$.error'),
    leased_until = NULL,
    token = NULL
FROM json_each(%(outcomes)s) AS outcome
WHERE delivery.id = json_extract(outcome.value, '$.id')
    AND delivery.token = json_extract(outcome.value, '$.token')
    AND delivery.state = 'waiting'
RETURNING id
