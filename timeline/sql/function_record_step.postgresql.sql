-- Record a step, if the attempt still belongs to its worker. The task's row is locked for this: whoever takes the attempt from
-- the worker has to change that row.
-- With "patience", which is given in a transaction, it waits for locks no longer than this; the transaction may have locked
-- rows that the holder of the task's row wants next. Afterwards the host's own lock_timeout is set again. Returns the result as
-- the database has stored it.
-- This is a function because PostgreSQL keeps its plan. Making the plan takes longer than executing it.
-- If the task is the origin, its id is left out.
CREATE OR REPLACE FUNCTION timeline_record_step(
    its_origin uuid, its_name text, its_task uuid, its_attempt integer, its_kind text, its_at timestamptz,
    its_seconds double precision, its_digest text, its_code text, its_result jsonb, patience interval
) RETURNS TABLE (stored text) LANGUAGE plpgsql AS $$
DECLARE
    before text := current_setting('lock_timeout');
BEGIN
    IF patience IS NOT NULL THEN
        PERFORM set_config('lock_timeout', (1000 * EXTRACT(epoch FROM LEAST(NULLIF(before::interval, '0'), patience)))::integer::text, true);
    END IF;
    RETURN QUERY
    INSERT INTO timeline_step (origin, name, task_id, attempt, kind, recorded_at, seconds, digest, code, result)
    SELECT its_origin, its_name, NULLIF(task.id, its_origin), task.attempt,
        its_kind, its_at, its_seconds, its_digest, its_code, its_result
    FROM timeline_scheduledtask AS task
    WHERE task.id = its_task AND task.state || '' = 'active' AND task.attempt = its_attempt
    FOR NO KEY UPDATE OF task
    ON CONFLICT (origin, name) DO NOTHING
    RETURNING timeline_step.result::text;
    IF patience IS NOT NULL THEN
        PERFORM set_config('lock_timeout', before, true);
    END IF;
END
$$
