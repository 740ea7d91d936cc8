-- Available tasks: so many of each kind and priority, the longest due first.
    SELECT task.id, task.state
    FROM unnest(%(task_keys)s::text[], %(priorities)s::integer[], %(sizes)s::integer[]) AS share(task_key, priority, size)
    CROSS JOIN LATERAL (
        SELECT id, state
        FROM timeline_scheduledtask
        WHERE state = 'available' AND task_key = share.task_key AND priority = share.priority
        ORDER BY scheduled_at, id
        LIMIT share.size
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS task
