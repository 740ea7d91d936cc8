-- Which of these kinds of tasks have an open task in their run. Each kind is looked up separately, as in end_open_runs. The
-- search stops at the first task, because there may be thousands.
-- ORDER BY asks for the first by name. If any task would do, PostgreSQL might read the table until it finds one.
SELECT kind.run_id, kind.task_key
FROM unnest(%(labels)s::uuid[], %(ids)s::text[]) AS kind(run_id, task_key)
CROSS JOIN LATERAL (
    SELECT
    FROM timeline_scheduledtask
    WHERE run_id = kind.run_id
        AND run_id IS NOT NULL
        AND task_key = kind.task_key
        AND state IN ({open})
    ORDER BY occurrence
    LIMIT 1
) AS task
