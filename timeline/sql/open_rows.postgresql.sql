-- The keys of the tasks that have rows in some runs, and how many of these rows are open. OFFSET 0 makes PostgreSQL look up
-- each run separately. Otherwise it might read the whole table.
SELECT task_key, sum(is_open)
FROM unnest(%(runs)s::uuid[]) AS run (id)
CROSS JOIN LATERAL (
    SELECT task_key, (finished_at IS NULL)::int AS is_open
    FROM timeline_scheduledtask
    WHERE run_id = run.id AND occurrence = ''
    OFFSET 0
) AS task
GROUP BY task_key
