-- The open tasks of some runs, in the lock order. They are sorted after they were found, as in held_entity. With "before", only
-- tasks of some kinds whose time is before that.
    SELECT id, state
    FROM timeline_scheduledtask
    WHERE run_id = ANY(%(runs)s::uuid[])
        AND state NOT IN ({final})
        AND id <> ALL(%(spared)s::uuid[])
        AND nominal_at < %(before)s AND task_key = ANY(%(kinds)s::text[])  -- if before
        AND (planned_at < %(before)s OR task_key = ANY(%(earlier)s::text[]))  -- if before
    ORDER BY id::text
    FOR NO KEY UPDATE
