-- The kinds of tasks there are: from each to the next one, in the order of the index, which is not that of the database's
-- collation.
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
