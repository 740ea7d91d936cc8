-- Writes all of a move of one entity: the event, its machines' runs with their entries, what is cancelled with its log, and new
-- rows. The caller has locked all of them. Where the event is not new, or a run has not moved, nothing more is written. A function:
-- PostgreSQL keeps its plans, which take longer to make than what it does. What changes a row is composed of columns.sql and
-- entries.sql when migrate puts it.
CREATE OR REPLACE FUNCTION timeline_move_at_once(
    its_event json, its_moves json, its_runs uuid[], its_changes json, its_ids uuid[], its_tasks json, its_at timestamptz,
    its_name text, its_actor text,
    OUT is_met boolean, OUT moved_runs uuid[], OUT told json, OUT made uuid[]
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    INSERT INTO timeline_event ({event})
    SELECT {its_event}
    FROM json_to_record(its_event) AS new({as_event})
    ON CONFLICT DO NOTHING
    RETURNING {asked} INTO is_met;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    moved_runs := ARRAY(SELECT timeline_move_runs(its_moves, its_runs, its_at, its_name, its_actor));
    IF cardinality(moved_runs) < cardinality(its_runs) THEN
        RETURN;
    END IF;
    IF cardinality(its_ids) > 0 THEN
{changed};
    END IF;
    IF its_tasks IS NOT NULL THEN
        WITH inserted AS (
            INSERT INTO timeline_scheduledtask ({task})
            SELECT {its_task}
            FROM json_to_recordset(its_tasks) AS new({as_task})
            ON CONFLICT DO NOTHING
            RETURNING id
        )
        SELECT array_agg(inserted.id) INTO made FROM inserted;
    END IF;
END
$$
