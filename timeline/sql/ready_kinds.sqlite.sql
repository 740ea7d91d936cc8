-- Which kinds have available tasks, and the first priority of each. Its due time is of no use here: tasks are read, then written.
SELECT task_key, MIN(priority), NULL
FROM timeline_scheduledtask
WHERE state = 'available' AND task_key IN (SELECT value FROM json_each(%(task_keys)s))
GROUP BY task_key
