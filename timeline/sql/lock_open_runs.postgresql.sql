-- Locks the open runs of an entity, in the lock order.
SELECT *
FROM timeline_timelinerun
WHERE entity_label = %(label)s
    AND entity_id = %(entity)s
    AND ended_at IS NULL
ORDER BY id
FOR NO KEY UPDATE
