-- What is open of some runs, in the lock order: sorted once found, as in held_entity.
    SELECT id, state
    FROM timeline_scheduledtask
    WHERE run_id = ANY(%(runs)s::uuid[])
        AND state NOT IN ({final})
        AND id <> ALL(%(spared)s::uuid[])
        AND nominal_at < %(before)s AND task_key = ANY(%(kinds)s::text[])  -- if before
        AND (planned_at < %(before)s OR task_key = ANY(%(earlier)s::text[]))  -- if before
    ORDER BY id::text
    FOR NO KEY UPDATE
