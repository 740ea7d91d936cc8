-- Available tasks: a given number of each kind and priority, the longest due first. Each search starts at the due time and id
-- of the first task, as in held_due.
    SELECT task.id, task.state
    FROM unnest(
        %(task_keys)s::text[], %(priorities)s::integer[], %(sizes)s::integer[], %(since)s::timestamptz[], %(since_ids)s::uuid[]
    ) AS share(task_key, priority, size, since, since_id)
    CROSS JOIN LATERAL (
        SELECT id, state
        FROM timeline_scheduledtask
        WHERE state = 'available' AND limit_key = '' AND task_key = share.task_key AND priority = share.priority
            AND (scheduled_at, id) >= (share.since, share.since_id)
            AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
        ORDER BY scheduled_at, id
        LIMIT share.size
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS task
