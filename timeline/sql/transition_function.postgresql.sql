-- Refuses a move that the lifecycle's table does not have. Its operators are named in full, as in final_function: each session reads
-- a function anew, and would else take those that stand in a schema of its search_path.
CREATE OR REPLACE FUNCTION timeline_refuse_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||) NEW.state) OPERATOR(pg_catalog.<>) ALL (ARRAY[{pairs}]) THEN
        RAISE EXCEPTION USING MESSAGE = 'timeline: this transition is not allowed', ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$
