-- Tasks at rest that wait for an event of some entities, their own, in the lock order; what is due already needs no waking. Each
-- entity is looked up by itself, in the index of those who wait.
    SELECT id, state
    FROM timeline_scheduledtask
    WHERE id = ANY(ARRAY(
            SELECT task.id
            FROM unnest(%(labels)s::text[], %(ids)s::text[]) AS entity(label, id)
            CROSS JOIN LATERAL (
                SELECT id
                FROM timeline_scheduledtask
                WHERE awaits_label = entity.label
                    AND awaits_id = entity.id
                    AND awaits > ''
                    AND state IN ({waiting})
                    AND NOT awaits_other
                    AND %(name)s = ANY(string_to_array(awaits, ' '))
                    AND awaits_key IN ('', %(key)s)
                OFFSET 0
            ) AS task
        ))
        AND state || '' IN ({waiting})
        AND awaits > ''
        AND scheduled_at > %(at)s
    ORDER BY id::text
    FOR NO KEY UPDATE
