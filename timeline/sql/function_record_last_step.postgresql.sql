-- Record the last step of a transaction, as function_record_step does. If nothing is recorded, it raises an error. Otherwise
-- the COMMIT that was sent with it would commit the transaction without the step.
CREATE OR REPLACE FUNCTION timeline_record_last_step(
    its_origin uuid, its_name text, its_task uuid, its_attempt integer, its_kind text, its_at timestamptz,
    its_seconds double precision, its_digest text, its_code text, its_result jsonb, patience interval
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    given text;
BEGIN
    SELECT stored INTO given
    FROM timeline_record_step(
        its_origin, its_name, its_task, its_attempt, its_kind, its_at, its_seconds, its_digest, its_code, its_result, patience
    );
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nothing is recorded of step % of task %', its_name, its_task USING ERRCODE = 'TL001';
    END IF;
    RETURN given;
END
$$
