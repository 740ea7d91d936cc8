-- Writes a delivery of each fact to each endpoint that is enabled and wants one of its topics. Who would delete one of these
-- waits until this is committed: else the rows would refer to nothing by then.
WITH endpoint AS MATERIALIZED (
    SELECT id, ordered, topics
    FROM timeline_webhooks_endpoint
    WHERE disabled_at IS NULL AND topics ?| ARRAY(SELECT jsonb_array_elements_text(%(topics)s::jsonb))
    ORDER BY id
    FOR KEY SHARE
)
INSERT INTO timeline_webhooks_delivery (
    endpoint_id, source, topic, entity_label, entity_id, order_key, body, state, code, attempts,
    created_at, due_at, give_up_at, error
)
SELECT
    endpoint.id, fact.source, fact.topic, fact.label, fact.entity,
    CASE endpoint.ordered
        WHEN 'all' THEN ''
        WHEN 'no' THEN fact.source::text
        ELSE fact.label || ':' || fact.entity
    END,
    fact.body, 'waiting', '', 0, %(now)s, %(now)s, %(until)s, ''
FROM ROWS FROM (
    json_to_recordset(%(facts)s::json) AS (source uuid, topic text, topics text[], label text, entity text, body text)
) WITH ORDINALITY AS fact(source, topic, topics, label, entity, body, place)
INNER JOIN endpoint ON endpoint.topics ?| fact.topics
ORDER BY fact.place, endpoint.id
ON CONFLICT (endpoint_id, source) DO NOTHING
