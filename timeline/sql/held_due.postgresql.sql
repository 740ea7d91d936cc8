-- Waiting tasks whose time has come, the longest due first. The search starts at the first of them, whose due time and id the
-- caller knows. Otherwise PostgreSQL would read the index from its beginning, where dead entries of earlier due tasks may lie.
    SELECT id, state
    FROM timeline_scheduledtask
    WHERE state IN ({waiting}) AND scheduled_at <= %(at)s
        AND (scheduled_at, id) >= (%(since)s::timestamptz, %(since_id)s::uuid)
    ORDER BY scheduled_at, id
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
