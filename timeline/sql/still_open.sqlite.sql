-- Which of these kinds of tasks have an open task in their run.
SELECT json_extract(kind.value, '$[0]') AS run_id, json_extract(kind.value, '$[1]') AS task_key
FROM json_each(%(entities)s) AS kind
WHERE EXISTS (
    SELECT 1
    FROM timeline_scheduledtask AS task
    WHERE task.run_id = json_extract(kind.value, '$[0]')
        AND task.run_id IS NOT NULL
        AND task.task_key = json_extract(kind.value, '$[1]')
        AND task.state IN ({open})
)
