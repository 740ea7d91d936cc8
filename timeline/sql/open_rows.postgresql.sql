-- Tasks that have rows in some runs, and how many of these are open. Run by run (OFFSET 0): not by reading the whole table.
SELECT task_key, sum(is_open)
FROM unnest(%(runs)s::uuid[]) AS run (id)
CROSS JOIN LATERAL (
    SELECT task_key, (finished_at IS NULL)::int AS is_open
    FROM timeline_scheduledtask
    WHERE run_id = run.id AND occurrence = ''
    OFFSET 0
) AS task
GROUP BY task_key
