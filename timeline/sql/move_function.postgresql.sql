-- Refuse a move of a run for which there is no edge. This is a function because the condition of a trigger cannot read another
-- table. The operators are named with their schema, as in transition_function.
CREATE OR REPLACE FUNCTION timeline_refuse_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.ended_at IS NOT NULL
        OR OLD.state OPERATOR(pg_catalog.=) ''
        OR NEW.moves OPERATOR(pg_catalog.<>) (OLD.moves OPERATOR(pg_catalog.+) 1)
        OR (NEW.state OPERATOR(pg_catalog.<>) OLD.state AND NOT EXISTS (
            SELECT FROM timeline_edge
            WHERE timeline OPERATOR(pg_catalog.=) OLD.timeline
                AND from_state OPERATOR(pg_catalog.=) OLD.state
                AND to_state OPERATOR(pg_catalog.=) NEW.state
        ))
    THEN
        RAISE EXCEPTION USING MESSAGE = 'timeline: this machine has no such move', ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$
