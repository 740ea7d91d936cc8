-- Locks tasks and reads them, in the lock order: sorted once found, as in held_entity.
SELECT {columns}
FROM timeline_scheduledtask
WHERE id = ANY(%(ids)s::uuid[])
ORDER BY id::text
FOR NO KEY UPDATE
