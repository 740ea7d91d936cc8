-- Writes a delivery of each fact to each endpoint that is enabled and wants one of its topics.
INSERT INTO timeline_webhooks_delivery (
    endpoint_id, source, topic, entity_label, entity_id, order_key, body, state, code, attempts,
    created_at, due_at, give_up_at, error
)
SELECT
    endpoint.id,
    json_extract(fact.value, '$.source'),
    json_extract(fact.value, '$.topic'),
    json_extract(fact.value, '$.label'),
    json_extract(fact.value, '$.entity'),
    CASE endpoint.ordered
        WHEN 'all' THEN ''
        WHEN 'no' THEN json_extract(fact.value, '$.source')
        ELSE json_extract(fact.value, '$.label') || ':' || json_extract(fact.value, '$.entity')
    END,
    json_extract(fact.value, '$.body'),
    'waiting', '', 0, %(now)s, %(now)s, %(until)s, ''
FROM json_each(%(facts)s) AS fact
INNER JOIN timeline_webhooks_endpoint AS endpoint
    ON endpoint.disabled_at IS NULL
    AND EXISTS (
        SELECT 1
        FROM json_each(endpoint.topics) AS wanted
        INNER JOIN json_each(fact.value, '$.topics') AS told ON told.value = wanted.value
    )
WHERE TRUE
ORDER BY fact.key, endpoint.id
ON CONFLICT (endpoint_id, source) DO NOTHING
