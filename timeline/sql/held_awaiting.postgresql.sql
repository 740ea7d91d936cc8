-- Waiting tasks that wait for an event of their own entity, for some entities, in the lock order. Tasks that are due already
-- are left out, because nobody has to wake them. Each entity is looked up separately, in the index of the tasks that wait for
-- events.
-- After a task is locked, PostgreSQL tests only the outer conditions again, so these are there a second time.
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
