-- Read tasks in the order of their ids. There is only one writer, so nothing has to be locked.
SELECT {columns}
FROM timeline_scheduledtask
WHERE id IN (SELECT value FROM json_each(%(ids)s))
ORDER BY id
