-- Locks the open runs of machines of one entity, and then the rows that they are planned from once they have moved, both in the
-- lock order: what runs_to_move_of_one and rows_to_plan find, in one trip. A function: PostgreSQL keeps its plans, which take longer
-- to make than what it does. Gives the runs, then the tasks, as JSON: to take rows of two tables apart takes longer. Rows are looked
-- up run by run, and key by key: so an index answers for each, however many rows a run has had. None, if no others are given; if
-- there is no key among them, as with most machines, the shorter of two statements asks for half of that.
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
