-- Reads tasks by their ids.
SELECT {columns}
FROM timeline_scheduledtask
WHERE id = ANY(%(ids)s::uuid[])
