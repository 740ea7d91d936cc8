-- The next open runs after a place, in the order of the index that allows one open run for each entity, timeline and key.
SELECT id, timeline, entity_label, entity_id, key
FROM timeline_timelinerun
WHERE ended_at IS NULL AND (entity_label, entity_id, timeline, key) > (%(label)s, %(id)s, %(timeline)s, %(key)s)
ORDER BY entity_label, entity_id, timeline, key
LIMIT %(size)s
