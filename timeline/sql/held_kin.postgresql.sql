-- Everything that is open of an entity that has several names, in the lock order, as in held_entity. Each name is looked up
-- separately, as in end_open_runs.
    WITH names AS MATERIALIZED (
        SELECT *
        FROM unnest(%(labels)s::text[], %(ids)s::text[]) AS name(label, id)
    ), runs AS MATERIALIZED (
        SELECT id
        FROM timeline_timelinerun
        WHERE ended_at IS NULL AND id = ANY(ARRAY(
            SELECT run.id
            FROM names
            CROSS JOIN LATERAL (
                SELECT id
                FROM timeline_timelinerun
                WHERE entity_label = names.label AND entity_id = names.id AND ended_at IS NULL
                OFFSET 0
            ) AS run
        ))
        ORDER BY id
        FOR NO KEY UPDATE
    )
    SELECT id, state
    FROM timeline_scheduledtask
    WHERE (SELECT count(*) FROM runs) >= 0
        AND id = ANY(ARRAY(
            SELECT task.id
            FROM names
            CROSS JOIN LATERAL (
                SELECT id
                FROM timeline_scheduledtask
                WHERE entity_label = names.label AND entity_id = names.id AND state NOT IN ({final})
                OFFSET 0
            ) AS task
        ))
        AND state NOT IN ({final})
        AND id <> ALL(%(spared)s::uuid[])
    ORDER BY id::text
    FOR NO KEY UPDATE
