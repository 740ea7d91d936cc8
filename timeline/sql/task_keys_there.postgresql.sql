-- The different keys of the tasks that exist. Each takes one look in an index: from one key to the next. The comparisons follow
-- the order of the index, which differs from the collation of the database.
WITH RECURSIVE there AS (
    (SELECT task_key FROM timeline_scheduledtask ORDER BY task_key USING ~<~ LIMIT 1)
    UNION ALL
    SELECT (
        SELECT task_key FROM timeline_scheduledtask WHERE task_key ~>~ there.task_key ORDER BY task_key USING ~<~ LIMIT 1
    )
    FROM there
    WHERE there.task_key IS NOT NULL
)
SELECT task_key FROM there WHERE task_key IS NOT NULL
