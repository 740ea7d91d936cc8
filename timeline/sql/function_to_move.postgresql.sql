-- Lock the open runs of some machines and one entity, and then the rows from which they are planned after their move. Both are
-- locked in the lock order. It finds what runs_to_move_of_one and rows_to_plan find, in one trip to the database.
-- Returns the runs, then the tasks, as JSON: splitting rows of two tables into columns takes longer.
-- Rows are looked up for each run, and each key, separately. So an index finds them, however many rows a run has had.
-- If "its_others" is NULL, no rows are read or locked. If it is empty, as with most machines, a shorter statement finds the
-- open rows only.
-- This is a function because PostgreSQL keeps its plans. Making them takes longer than executing them.
CREATE OR REPLACE FUNCTION timeline_to_move(its_label text, its_id text, its_timelines text[], its_others text[])
RETURNS TABLE (of_run json, of_task json) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    its record;
    its_runs uuid[];
BEGIN
    FOR its IN
        SELECT run.id, row_to_json(run) AS whole
        FROM timeline_timelinerun AS run
        WHERE run.ended_at IS NULL
            AND run.entity_label = its_label
            AND run.entity_id = its_id
            AND run.timeline = ANY(its_timelines)
            AND run.state > ''
        ORDER BY run.id
        FOR NO KEY UPDATE
    LOOP
        its_runs := its_runs || its.id;
        of_run := its.whole;
        RETURN NEXT;
    END LOOP;
    IF its_others IS NULL OR its_runs IS NULL THEN
        RETURN;
    END IF;
    IF cardinality(its_others) = 0 THEN
        RETURN QUERY
        SELECT NULL::json, row_to_json(task)
        FROM timeline_scheduledtask AS task
        WHERE task.id = ANY(ARRAY(
            SELECT standing.id
            FROM unnest(its_runs) AS moving(id)
            CROSS JOIN LATERAL (
                SELECT known.id
                FROM timeline_scheduledtask AS known
                WHERE known.run_id = moving.id AND known.state IN ({open})
                OFFSET 0
            ) AS standing
        ))
        ORDER BY task.id::text
        FOR NO KEY UPDATE;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT NULL::json, row_to_json(task)
    FROM timeline_scheduledtask AS task
    WHERE task.id = ANY(ARRAY(
        SELECT standing.id
        FROM unnest(its_runs) AS moving(id)
        CROSS JOIN LATERAL (
            SELECT known.id
            FROM timeline_scheduledtask AS known
            WHERE known.run_id = moving.id AND known.state IN ({open})
            OFFSET 0
        ) AS standing
        UNION
        SELECT other.id
        FROM unnest(its_runs) AS moving(id)
        CROSS JOIN unnest(its_others) AS its_other(task_key)
        CROSS JOIN LATERAL (
            SELECT known.id
            FROM timeline_scheduledtask AS known
            WHERE known.run_id = moving.id AND known.task_key = its_other.task_key
            OFFSET 0
        ) AS other
    ))
    ORDER BY task.id::text
    FOR NO KEY UPDATE;
END
$$
