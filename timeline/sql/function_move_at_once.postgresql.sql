-- Write a whole move of one entity: the event, the moves of its runs with their entries, cancelled tasks with their log, and
-- new tasks. The caller has locked the entity, the runs and the tasks.
-- Returns NULL if the event is not new; then nothing is written. If a run has not moved, the function stops after the event and
-- the runs, and the caller undoes these. Returns JSON: whether a task waits for the event, ids of the runs that have moved, the
-- changed rows as they are now, and the ids of the new rows.
-- This is a function because PostgreSQL keeps its plans. Making them takes longer than executing them.
-- It is composed when migrate installs it: columns.sql and entries.sql say how a row changes, and the bodies of
-- function_move_runs and function_is_awaited are in place of calls, since calls take time.
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
