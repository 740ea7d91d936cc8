-- Which kinds have available tasks, and the first priority of each.
SELECT kind.task_key, most_urgent.priority
FROM unnest(%(task_keys)s::text[]) AS kind(task_key)
CROSS JOIN LATERAL (
    SELECT priority
    FROM timeline_scheduledtask
    WHERE state = 'available' AND task_key = kind.task_key
    ORDER BY priority, scheduled_at, id
    LIMIT 1
) AS most_urgent
