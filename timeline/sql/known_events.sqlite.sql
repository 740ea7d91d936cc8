-- The events of some entities that have a name and key.
SELECT event.*
FROM json_each(%(ids)s) AS entity
JOIN timeline_event AS event ON event.entity_id = entity.value
WHERE event.entity_label = %(label)s
    AND event.name = %(name)s
    AND event.key = %(key)s
