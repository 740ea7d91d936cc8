-- Which kinds have available tasks, with the priority and the due time of the first task of each kind; and whether anything is
-- on hold. If entities are on hold, their tasks are skipped.
SELECT kind.task_key, most_urgent.priority, most_urgent.scheduled_at, EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL)
FROM unnest(%(task_keys)s::text[]) AS kind(task_key)
CROSS JOIN LATERAL (
    SELECT priority, scheduled_at
    FROM timeline_scheduledtask
    WHERE state = 'available' AND limit_key = '' AND task_key = kind.task_key
        AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
    ORDER BY priority, scheduled_at, id
    LIMIT 1
) AS most_urgent
