-- The open holds of some entities, under any of their names; and all open holds that are not about an entity.
SELECT *
FROM timeline_hold
WHERE released_at IS NULL
    AND (
        scope <> 'entity'
        OR EXISTS (
            SELECT 1
            FROM json_each(names) AS name
            JOIN json_each(%(entities)s) AS entity
                ON json_extract(entity.value, '$[0]') = json_extract(name.value, '$[0]')
                AND json_extract(entity.value, '$[1]') = json_extract(name.value, '$[1]')
        )
    )
