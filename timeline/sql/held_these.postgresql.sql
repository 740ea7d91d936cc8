-- Lock the rows that are to be changed, in the lock order. They are sorted after they were found, as in held_entity.
    SELECT id
    FROM timeline_scheduledtask
    WHERE id = ANY(%(ids)s::uuid[])
    ORDER BY id::text
    FOR NO KEY UPDATE {skip}
