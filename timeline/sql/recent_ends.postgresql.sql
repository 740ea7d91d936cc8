-- How the last due tasks of each kind ended: some tasks of each final state, the latest due first. Each kind and state takes a
-- few entries of one index.
SELECT task.id, task.task_key, task.state, task.reason_code, task.started_at, task.finished_at
FROM unnest(%(task_keys)s::text[]) AS kind(task_key)
CROSS JOIN unnest(%(states)s::text[]) AS ended(state)
CROSS JOIN LATERAL (
    SELECT *
    FROM timeline_scheduledtask
    WHERE task_key = kind.task_key AND state = ended.state
    ORDER BY scheduled_at DESC
    LIMIT %(most)s
) AS task
