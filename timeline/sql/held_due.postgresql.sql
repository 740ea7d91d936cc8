-- Waiting tasks whose time has come, the longest due first.
    SELECT id, state
    FROM timeline_scheduledtask
    WHERE state IN ({waiting}) AND scheduled_at <= %(at)s
    ORDER BY scheduled_at, id
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
