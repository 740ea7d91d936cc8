-- Reads tasks.
SELECT {columns}
FROM timeline_scheduledtask
WHERE id IN (SELECT value FROM json_each(%(ids)s))
ORDER BY id
