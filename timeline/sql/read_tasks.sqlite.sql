-- Reads tasks by their ids.
SELECT {columns}
FROM timeline_scheduledtask
WHERE id IN (SELECT value FROM json_each(%(ids)s))
