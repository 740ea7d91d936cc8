-- Read tasks by their ids. Nothing is locked.
SELECT {columns}
FROM timeline_scheduledtask
WHERE id = ANY(%(ids)s::uuid[])
