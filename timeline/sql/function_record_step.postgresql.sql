-- What records a step. A function: PostgreSQL keeps its plan, which takes longer to make than what it does.
-- While the attempt is its worker's: whoever takes it from them changes the task's row, which is locked here last. In a
-- transaction that has locked something else, that row is not waited for for longer than `patience`; what the host has its
-- transactions wait is put back. Gives what the database has made of the result.
-- The id of the task is left out where it is the origin. Code before 0071 does not know that, and looks for it: it is known by its
-- longer `code`.
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
    SELECT its_origin, its_name, CASE WHEN length(its_code) < 16 THEN NULLIF(task.id, its_origin) ELSE task.id END,
        task.attempt, its_kind, its_at, its_seconds, its_digest, its_code, its_result
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
