-- Those of the given tasks that may be started: of a known kind, and due, whether claimed with this token or not claimed. A
-- task that needs a place of a limit must have one already. If several tasks are given, only those are started that are at
-- their first attempt or whose last attempt ended at rest.
    SELECT id, state
    FROM timeline_scheduledtask
    WHERE id = ANY(%(ids)s::uuid[])
        AND task_key = ANY(%(task_keys)s::text[])
        AND (
            (state = 'available' AND (limit_key = '' OR slot > 0))
            OR (state = 'pending' AND claim_token = %(claim_token)s::uuid)
            OR (state IN ({waiting}) AND limit_key = '' AND scheduled_at <= %(at)s)
        )
        AND (attempt <= %(attempts)s OR reason_code IN ({at_rest}))
    ORDER BY id
    FOR NO KEY UPDATE {skip}
