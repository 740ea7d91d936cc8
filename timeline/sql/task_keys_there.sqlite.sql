-- The kinds of tasks there are: from each to the next one.
WITH RECURSIVE there (task_key) AS (
    SELECT MIN(task_key) FROM timeline_scheduledtask
    UNION ALL
    SELECT (SELECT MIN(task_key) FROM timeline_scheduledtask WHERE task_key > there.task_key)
    FROM there
    WHERE there.task_key IS NOT NULL
)
SELECT task_key FROM there WHERE task_key IS NOT NULL
