-- The different keys of the tasks that exist. Each takes one look in an index: from one key to the next.
WITH RECURSIVE there (task_key) AS (
    SELECT MIN(task_key) FROM timeline_scheduledtask
    UNION ALL
    SELECT (SELECT MIN(task_key) FROM timeline_scheduledtask WHERE task_key > there.task_key)
    FROM there
    WHERE there.task_key IS NOT NULL
)
SELECT task_key FROM there WHERE task_key IS NOT NULL
