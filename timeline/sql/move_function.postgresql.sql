-- Refuse a move of a run for which there is no edge, and to open or end a run anew that has ended. This is a function because the condition
-- of a trigger cannot read another table. The operators are named with their schema, as in transition_function, and so is the
-- table: a session may have a temporary one of this name, which it would find first. It is the one in the schema of the runs.
CREATE OR REPLACE FUNCTION timeline_refuse_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_known boolean;
BEGIN
    IF OLD.ended_at IS NOT NULL
        OR OLD.state OPERATOR(pg_catalog.=) ''
        OR NEW.moves OPERATOR(pg_catalog.<>) (OLD.moves OPERATOR(pg_catalog.+) 1)
    THEN
        RAISE EXCEPTION USING MESSAGE = 'timeline: this machine has no such move', ERRCODE = 'check_violation';
    END IF;
    IF NEW.state OPERATOR(pg_catalog.=) OLD.state THEN
        RETURN NEW;
    END IF;
    IF TG_TABLE_SCHEMA OPERATOR(pg_catalog.=) {schema_text} THEN  -- Where it was installed: its plan is kept.
        SELECT EXISTS (
            SELECT FROM {schema}.timeline_edge
            WHERE timeline OPERATOR(pg_catalog.=) OLD.timeline
                AND from_state OPERATOR(pg_catalog.=) OLD.state
                AND to_state OPERATOR(pg_catalog.=) NEW.state
        ) INTO is_known;
    ELSE
        EXECUTE pg_catalog.format(
            'SELECT EXISTS (SELECT FROM %I.timeline_edge WHERE timeline OPERATOR(pg_catalog.=) $1'
            ' AND from_state OPERATOR(pg_catalog.=) $2 AND to_state OPERATOR(pg_catalog.=) $3)',
            TG_TABLE_SCHEMA
        ) INTO is_known USING OLD.timeline, OLD.state, NEW.state;
    END IF;
    IF NOT is_known THEN
        RAISE EXCEPTION USING MESSAGE = 'timeline: this machine has no such move', ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$
