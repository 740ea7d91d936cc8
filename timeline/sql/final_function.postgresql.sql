-- Refuses to change how a task has ended.
CREATE OR REPLACE FUNCTION timeline_refuse_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state IS DISTINCT FROM OLD.state
        OR NEW.attempt IS DISTINCT FROM OLD.attempt
        OR NEW.seq IS DISTINCT FROM OLD.seq
        OR NEW.scheduled_at IS DISTINCT FROM OLD.scheduled_at
        OR NEW.finished_at IS DISTINCT FROM OLD.finished_at
        OR NEW.reason_code IS DISTINCT FROM OLD.reason_code
    THEN
        RAISE EXCEPTION USING MESSAGE = 'timeline: a task that has ended does not change', ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$
