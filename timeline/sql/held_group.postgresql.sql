-- Available tasks of one kind and priority that may run in one group. If the first of them is at its first attempt, or if its
-- last attempt ended at rest, these are all such tasks. Otherwise it is the first task alone, if it may be retried now.
-- The search starts at the due time and id of the first task, as in held_due.
    SELECT id, state
    FROM (
        SELECT id, state, attempt,
            row_number() OVER longest_due AS place,
            first_value(attempt) OVER longest_due AS first_attempt
        FROM (
            SELECT id, state, CASE WHEN reason_code IN ({at_rest}) THEN 0 ELSE attempt END AS attempt, scheduled_at
            FROM timeline_scheduledtask
            WHERE state = 'available' AND limit_key = '' AND task_key = %(task_key)s AND priority = %(priority)s
                AND (scheduled_at, id) >= (%(since)s::timestamptz, %(since_id)s::uuid)
                AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
            ORDER BY scheduled_at, id
            LIMIT %(most)s
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS ready
        WINDOW longest_due AS (ORDER BY scheduled_at, id)
    ) AS ranked
    WHERE CASE WHEN first_attempt > 0 THEN %(retried)s AND place = 1 ELSE attempt = 0 END
