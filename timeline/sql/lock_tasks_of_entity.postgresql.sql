-- Locks what is open of an entity and reads it, in the lock order: sorted once found, as in lock_open_tasks.
SELECT {columns}
FROM timeline_scheduledtask
WHERE entity_label = %(label)s
    AND entity_id = %(entity)s
    AND state NOT IN ({final})
    AND id <> ALL(%(spared)s::uuid[])
ORDER BY id::text
FOR NO KEY UPDATE
