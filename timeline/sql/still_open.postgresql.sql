-- Which of these kinds of tasks have an open one in their run. Each is looked up by itself, as in end_open_runs, and no further
-- than its first: there may be thousands. The first by name: told just any, PostgreSQL may read the table until it meets one.
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
