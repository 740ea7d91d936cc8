-- The events of some entities with a given name and key. Each name of an entity is looked up separately, as in end_open_runs.
SELECT event.*
FROM unnest(%(labels)s::text[], %(ids)s::text[]) AS entity(label, id)
CROSS JOIN LATERAL (
    SELECT *
    FROM timeline_event
    WHERE entity_label = entity.label
        AND entity_id = entity.id
        AND name = %(name)s
        AND key = %(key)s
    OFFSET 0
) AS event
