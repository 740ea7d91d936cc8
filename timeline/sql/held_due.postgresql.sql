-- Waiting tasks whose time has come, the longest due first: from the first one on, which the caller knows, so that the index
-- is not read again from its beginning, where entries of what was due before may lie.
    SELECT id, state
    FROM timeline_scheduledtask
    WHERE state IN ({waiting}) AND scheduled_at <= %(at)s AND scheduled_at >= %(since)s
    ORDER BY scheduled_at, id
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
