-- The events of some entities that have a name and key; each entity is looked up by itself, as in end_open_runs.
SELECT event.*
FROM unnest(%(ids)s::text[]) AS entity(id)
CROSS JOIN LATERAL (
    SELECT *
    FROM timeline_event
    WHERE entity_label = %(label)s
        AND entity_id = entity.id
        AND name = %(name)s
        AND key = %(key)s
    OFFSET 0
) AS event
