-- The keys of the tasks that have rows in some runs, and how many of these rows are open.
SELECT task_key, sum(finished_at IS NULL)
FROM timeline_scheduledtask
WHERE run_id IN (SELECT value FROM json_each(%(runs)s)) AND occurrence = ''
GROUP BY task_key
