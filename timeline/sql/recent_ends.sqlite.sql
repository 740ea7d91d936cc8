-- How the last due tasks of each kind ended: some tasks of each final state, the latest due first.
SELECT task.id, task.task_key, task.state, task.reason_code, task.started_at, task.finished_at
FROM json_each(%(task_keys)s) AS kind
JOIN json_each(%(states)s) AS ended
JOIN timeline_scheduledtask AS task ON task.id IN (
    SELECT id
    FROM timeline_scheduledtask
    WHERE task_key = kind.value AND state = ended.value
    ORDER BY scheduled_at DESC
    LIMIT %(most)s
)
