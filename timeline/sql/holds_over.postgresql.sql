-- The open holds of some entities, under any of their names; and all open holds that are not about an entity.
SELECT *
FROM timeline_hold
WHERE released_at IS NULL
    AND (
        scope <> 'entity'
        OR EXISTS (
            SELECT FROM jsonb_array_elements(names) AS name
            WHERE (name ->> 0, name ->> 1) IN (
                SELECT entity.label, entity.id FROM unnest(%(labels)s::text[], %(ids)s::text[]) AS entity(label, id)
            )
        )
    )
