-- Lock tasks in the lock order, and read them. They are sorted after they were found, as in held_entity.
SELECT {columns}
FROM timeline_scheduledtask
WHERE id = ANY(%(ids)s::uuid[])
ORDER BY id::text
FOR NO KEY UPDATE
