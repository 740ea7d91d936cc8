-- The rows that are to be changed, in the lock order.
    SELECT id
    FROM timeline_scheduledtask
    WHERE id = ANY(%(ids)s::uuid[])
    ORDER BY id::text
    FOR NO KEY UPDATE {skip}
