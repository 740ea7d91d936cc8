-- Refuse to change how a task has ended. The rows are compared by a function, record_eq, because a session may have operators
-- of its own before those of PostgreSQL. For this function, NULL equals NULL.
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
