-- Refuse a move that the lifecycle does not have. The operators are named with their schema: each session reads a function
-- anew, and would otherwise use operators of other schemas that are in its search_path.
CREATE OR REPLACE FUNCTION timeline_refuse_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||) NEW.state) OPERATOR(pg_catalog.<>) ALL (ARRAY[{pairs}]) THEN
        RAISE EXCEPTION USING MESSAGE = 'timeline: this transition is not allowed', ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$
