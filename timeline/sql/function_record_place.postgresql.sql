-- Record how far a loop has come, if the attempt still belongs to its worker. A loop has one record: it is inserted, or
-- overwritten. A record of a step that is done or begun is never overwritten. For "patience", see function_record_step. A note
-- does not lock the task's row, since nothing depends on a note. Returns the result as the database has stored it.
CREATE OR REPLACE FUNCTION timeline_record_place(
    its_origin uuid, its_name text, its_task uuid, its_attempt integer, its_kind text, its_at timestamptz,
    its_seconds double precision, its_digest text, its_code text, its_result jsonb, its_place jsonb, is_done bigint, its_total bigint,
    done_by integer, patience interval
) RETURNS TABLE (stored text) LANGUAGE plpgsql AS $$
DECLARE
    before text := current_setting('lock_timeout');
BEGIN
    IF patience IS NOT NULL THEN
        PERFORM set_config('lock_timeout', (1000 * EXTRACT(epoch FROM LEAST(NULLIF(before::interval, '0'), patience)))::integer::text, true);
    END IF;
    IF its_kind <> 'note' THEN
        PERFORM FROM timeline_scheduledtask AS task WHERE task.id = its_task FOR NO KEY UPDATE;
    END IF;
    RETURN QUERY
    INSERT INTO timeline_step AS step (
        origin, name, task_id, attempt, kind, recorded_at, seconds, digest, code, result, place, done, total
    )
    SELECT
        its_origin, its_name, task.id, COALESCE(done_by, task.attempt), its_kind, its_at, its_seconds, its_digest, its_code,
        its_result, its_place, is_done, its_total
    FROM timeline_scheduledtask AS task
    WHERE task.id = its_task AND task.state || '' = 'active' AND task.attempt = its_attempt
    ON CONFLICT (origin, name) DO UPDATE
    SET task_id = excluded.task_id, attempt = excluded.attempt, kind = excluded.kind, recorded_at = excluded.recorded_at,
        seconds = excluded.seconds, code = excluded.code, result = excluded.result, place = excluded.place,
        done = excluded.done, total = excluded.total
    WHERE step.kind IN ('loop', 'note', 'wait', 'over')
    RETURNING step.result::text;
    IF patience IS NOT NULL THEN
        PERFORM set_config('lock_timeout', before, true);
    END IF;
END
$$
