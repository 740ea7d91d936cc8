-- Refuses a move that the lifecycle's table does not have.
CREATE OR REPLACE FUNCTION timeline_refuse_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state || ' ' || NEW.state NOT IN ({pairs}) THEN
        RAISE EXCEPTION USING MESSAGE = 'timeline: this transition is not allowed', ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$
