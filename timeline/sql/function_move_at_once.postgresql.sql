-- Writes all of a move of one entity: the event, its machines' runs with their entries, what is cancelled with its log, and new
-- rows. The caller has locked all of them. Where the event is not new, or a run has not moved, nothing more is written. Gives, as
-- JSON, whether somebody waits for the event, the runs that have moved, rows as they are now, ids of those that are new. A function:
-- PostgreSQL keeps its plans, which take longer to make than what it does. When migrate puts it, it is composed: what changes a
-- row, of columns.sql and entries.sql; the bodies of function_move_runs and function_is_awaited stand in place of calls.
CREATE OR REPLACE FUNCTION timeline_move_at_once(
    its_event json, its_moves json, its_runs uuid[], its_changes json, its_ids uuid[], its_tasks json, its_at timestamptz
) RETURNS json LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    recorded record;
    gone uuid[];
    told json;
    made uuid[];
BEGIN
    INSERT INTO timeline_event ({event})
    SELECT {its_event}
    FROM json_to_record(its_event) AS new({as_event})
    ON CONFLICT DO NOTHING
    RETURNING name, actor, {asked} AS is_met INTO recorded;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    {moving};
    IF gone IS NULL OR cardinality(gone) < cardinality(its_runs) THEN
        RETURN json_build_object('moved', COALESCE(gone, '{}'));
    END IF;
    IF its_changes IS NOT NULL THEN
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
    RETURN json_build_object('met', recorded.is_met, 'moved', gone, 'told', told, 'made', made);
END
$$
