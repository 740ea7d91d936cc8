-- The next kind of task after one, walked in the order of the index, which is not that of the database's collation.
SELECT task_key
FROM timeline_scheduledtask
WHERE task_key ~>~ %s
ORDER BY task_key USING ~<~
LIMIT 1
