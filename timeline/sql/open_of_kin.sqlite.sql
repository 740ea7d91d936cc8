-- Read the open tasks of an entity that has several names.
SELECT {columns}
FROM timeline_scheduledtask
WHERE (entity_label, entity_id) IN (
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(%(entities)s)
    )
    AND state NOT IN ({final})
    AND id NOT IN (SELECT value FROM json_each(%(spared)s))
ORDER BY id
