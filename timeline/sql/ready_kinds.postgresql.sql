-- Which kinds have available tasks, and the priority and the due time of the first of each.
SELECT kind.task_key, most_urgent.priority, most_urgent.scheduled_at
FROM unnest(%(task_keys)s::text[]) AS kind(task_key)
CROSS JOIN LATERAL (
    SELECT priority, scheduled_at
    FROM timeline_scheduledtask
    WHERE state = 'available' AND task_key = kind.task_key
    ORDER BY priority, scheduled_at, id
    LIMIT 1
) AS most_urgent
