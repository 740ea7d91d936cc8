-- Refuses to change how a task has ended. Rows are compared by a function, which goes by no operator that a session may have put
-- before PostgreSQL's own; to it, two that are NULL are the same.
CREATE OR REPLACE FUNCTION timeline_refuse_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT pg_catalog.record_eq(
        ROW(NEW.state, NEW.attempt, NEW.seq, NEW.scheduled_at, NEW.finished_at, NEW.reason_code),
        ROW(OLD.state, OLD.attempt, OLD.seq, OLD.scheduled_at, OLD.finished_at, OLD.reason_code)
    ) THEN
        RAISE EXCEPTION USING MESSAGE = 'timeline: a task that has ended does not change', ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$
