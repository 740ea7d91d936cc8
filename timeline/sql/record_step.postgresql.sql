-- Record a step, while the attempt is its worker's: whoever takes it from them changes the task's row, which is locked here last.
-- In a transaction that has locked something else, that row is not waited for for long; what the host has its transactions wait
-- is put back. Gives what the database has made of the result.
WITH patience AS MATERIALIZED (  -- if within
    SELECT  -- if within
        current_setting('lock_timeout') AS before,  -- if within
        set_config('lock_timeout', (1000 * EXTRACT(epoch FROM LEAST(  -- if within
            NULLIF(current_setting('lock_timeout')::interval, '0'), %(patience)s::interval  -- if within
        )))::integer::text, true)  -- if within
),  -- if within
put AS (  -- if within
INSERT INTO timeline_step (origin, name, task_id, attempt, kind, recorded_at, seconds, digest, code, result)
SELECT %(origin)s, %(name)s, task.id, task.attempt, %(kind)s, %(at)s, %(seconds)s, %(digest)s, %(code)s, %(result)s::jsonb
FROM timeline_scheduledtask AS task
CROSS JOIN patience  -- if within
WHERE task.id = %(task)s AND task.state || '' = 'active' AND task.attempt = %(attempt)s
FOR NO KEY UPDATE OF task
ON CONFLICT (origin, name) DO NOTHING
RETURNING result::text
)  -- if within
SELECT put.result, set_config('lock_timeout', patience.before, true) FROM put CROSS JOIN patience  -- if within
