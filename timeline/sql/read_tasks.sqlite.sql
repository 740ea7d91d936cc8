-- Read tasks by their ids. Nothing is locked.
SELECT {columns}
FROM timeline_scheduledtask
WHERE id IN (SELECT value FROM json_each(%(ids)s))
