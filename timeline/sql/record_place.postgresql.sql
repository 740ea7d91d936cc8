-- Record how far a loop has come, while the attempt is its worker's: its one record is made, or written over. As in record_step,
-- the task's row is locked last, and within a transaction not waited for for long; a note, which counts for nothing, locks nothing.
-- Gives the result as the database has it.
WITH patience AS MATERIALIZED (  -- if within
    SELECT  -- if within
        current_setting('lock_timeout') AS before,  -- if within
        set_config('lock_timeout', (1000 * EXTRACT(epoch FROM LEAST(  -- if within
            NULLIF(current_setting('lock_timeout')::interval, '0'), %(patience)s::interval  -- if within
        )))::integer::text, true)  -- if within
),  -- if within
put AS (  -- if within
INSERT INTO timeline_step AS step (
    origin, name, task_id, attempt, kind, recorded_at, seconds, digest, code, result, place, done, total
)
SELECT
    %(origin)s, %(name)s, task.id, COALESCE(%(done_by)s, task.attempt), %(kind)s, %(at)s, %(seconds)s, %(digest)s, %(code)s,
    %(result)s::jsonb, %(place)s::jsonb, %(done)s, %(total)s
FROM timeline_scheduledtask AS task
CROSS JOIN patience  -- if within
WHERE task.id = %(task)s AND task.state || '' = 'active' AND task.attempt = %(attempt)s
FOR NO KEY UPDATE OF task  -- if not note
ON CONFLICT (origin, name) DO UPDATE
SET task_id = excluded.task_id, attempt = excluded.attempt, kind = excluded.kind, recorded_at = excluded.recorded_at,
    seconds = excluded.seconds, code = excluded.code, result = excluded.result, place = excluded.place,
    done = excluded.done, total = excluded.total
WHERE step.kind IN ('loop', 'note', 'wait', 'over')
RETURNING step.result::text
)  -- if within
SELECT put.result, set_config('lock_timeout', patience.before, true) FROM put CROSS JOIN patience  -- if within
