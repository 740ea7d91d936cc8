-- Writes what came of deliveries, and a line of the log for each. What is not given back was somebody else's by then.
WITH outcome AS (
    SELECT * FROM json_to_recordset(%(outcomes)s::json) AS (
        id bigint, token uuid, state text, code text, attempts integer, due_at timestamptz, ended_at timestamptz,
        status smallint, answer text, error text, duration_ms integer
    )
),
written AS (
    UPDATE timeline_webhooks_delivery AS delivery
    SET state = outcome.state, code = outcome.code, attempts = outcome.attempts, due_at = outcome.due_at,
        ended_at = outcome.ended_at, status = outcome.status, error = outcome.error,
        leased_until = NULL, token = NULL
    FROM outcome
    WHERE delivery.id = outcome.id
        AND delivery.token = outcome.token
        AND delivery.state = 'waiting'
    RETURNING outcome.*
),
logged AS (
    INSERT INTO timeline_webhooks_attempt (delivery_id, number, at, duration_ms, status, answer, error)
    SELECT id, attempts, %(now)s, duration_ms, status, answer, error
    FROM written
)
SELECT id FROM written
