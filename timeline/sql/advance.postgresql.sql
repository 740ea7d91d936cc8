-- One step for all rows that "held" finds and locks, with the log entries. A row that was waiting passes "available", unless it
-- ends; one that stands there already is left. The rows are joined from arrays, each of which PostgreSQL takes for ten elements:
-- from "held" itself, which it may take for one row or for a million, it would find each of them by all ids, or read the whole
-- table.
WITH held AS MATERIALIZED (
{held}
),
moved AS (
    UPDATE timeline_scheduledtask AS task
    SET state = %(to_state)s,
        seq = task.seq + 1,  -- if ends
        claim_token = NULL,  -- if ends
        lease_expires_at = NULL,  -- if ends
        reason_code = %(reason_code)s,  -- if ends
        reason = %(reason)s,  -- if ends
        actor = %(actor)s,  -- if ends
        finished_at = %(at)s::timestamptz  -- if ends
        seq = task.seq + CASE WHEN was.state IN ({waiting}) AND %(to_state)s <> 'available' THEN 2 ELSE 1 END,  -- if not ends
        attempt = task.attempt + CASE WHEN %(to_state)s = 'active' THEN 1 ELSE 0 END,  -- if not ends
        claim_token = CASE %(to_state)s  -- if not ends
            WHEN 'pending' THEN COALESCE(%(token)s::uuid, task.claim_token)  -- if not ends
            WHEN 'active' THEN task.claim_token  -- if not ends
        END,  -- if not ends
        lease_expires_at = CASE WHEN %(to_state)s <> 'available' THEN clock_timestamp() + %(lease)s::interval END,  -- if not ends
        sent_at = clock_timestamp(),  -- if claims
        worker = COALESCE(%(worker)s, task.worker),  -- if not ends
        started_at = CASE WHEN %(to_state)s = 'active' THEN %(at)s::timestamptz ELSE task.started_at END  -- if not ends
    FROM unnest(ARRAY(SELECT id FROM held), ARRAY(SELECT state FROM held)) AS was(id, state)
    WHERE task.id = was.id AND was.state <> %(to_state)s
    RETURNING task.*, was.state AS was
),
logged AS (
    INSERT INTO timeline_logentry (
        task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail
    )
    SELECT id, seq - 1, %(at)s::timestamptz, was, 'available', attempt - CASE WHEN state = 'active' THEN 1 ELSE 0 END,  -- if not ends
        '', '', '', '{}'::jsonb  -- if not ends
    FROM moved  -- if not ends
    WHERE was IN ({waiting}) AND state <> 'available'  -- if not ends
    UNION ALL  -- if not ends
    SELECT id, seq, %(at)s::timestamptz,
        was,  -- if ends
        CASE WHEN was IN ({waiting}) AND state <> 'available' THEN 'available' ELSE was END,  -- if not ends
        state, attempt,
        actor, reason_code, reason, '{}'::jsonb  -- if ends
        '', '', '', '{}'::jsonb  -- if not ends
    FROM moved
)
SELECT {columns}
FROM moved
ORDER BY priority, scheduled_at, id
