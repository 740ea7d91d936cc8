-- The events of some entities with a given name and key.
SELECT event.*
FROM json_each(%(entities)s) AS entity
JOIN timeline_event AS event
    ON event.entity_label = json_extract(entity.value, '$[0]') AND event.entity_id = json_extract(entity.value, '$[1]')
WHERE event.name = %(name)s
    AND event.key = %(key)s
