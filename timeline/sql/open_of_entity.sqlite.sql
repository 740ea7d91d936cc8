-- Read the open tasks of an entity.
SELECT {columns}
FROM timeline_scheduledtask
WHERE entity_label = %(label)s
    AND entity_id = %(entity)s
    AND state NOT IN ({final})
    AND id NOT IN (SELECT value FROM json_each(%(spared)s))
ORDER BY id
