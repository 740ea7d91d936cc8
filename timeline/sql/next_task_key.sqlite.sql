-- The next kind of task after one.
SELECT task_key
FROM timeline_scheduledtask
WHERE task_key > %s
ORDER BY task_key
LIMIT 1
