-- Tasks that may be taken now, for some keys of a limit: tasks that hold a place already, and the first of those that wait.
-- Python then gives the free places to as many as fit. There is only one writer, so nothing has to be locked.
-- A task is left out when a task of a competing kind comes before it and that kind has a free place.
SELECT {columns}
FROM json_each(%(limit_keys)s) AS key
JOIN timeline_scheduledtask AS task ON task.id IN (
    SELECT id FROM (
        SELECT id FROM timeline_scheduledtask
        WHERE limit_key = key.value AND slot > 0 AND state = 'available' AND task_key = %(task_key)s
            AND (attempt <= %(attempts)s OR reason_code IN ({at_rest}))
            AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
        LIMIT %(each)s
    )
    UNION ALL
    SELECT id FROM (
        SELECT id FROM timeline_scheduledtask AS waiting
        WHERE state = 'available' AND task_key = %(task_key)s AND limit_key = key.value AND limit_key > '' AND slot = 0
            AND NOT EXISTS (  -- if shared
                SELECT 1  -- if shared
                FROM json_each(%(others)s) AS other  -- if shared
                JOIN timeline_scheduledtask AS rival ON rival.state = 'available'  -- if shared
                    AND rival.task_key = json_extract(other.value, '$[0]')  -- if shared
                    AND rival.limit_key = key.value AND rival.limit_key > '' AND rival.slot = 0  -- if shared
                WHERE (rival.priority, rival.scheduled_at, rival.id) < (waiting.priority, waiting.scheduled_at, waiting.id)  -- if shared
                    AND (rival.entity_label, rival.entity_id) NOT IN ({entities_on_hold})  -- if shared_on_hold
                    AND json_extract(other.value, '$[1]') > (  -- if shared
                        SELECT count(*) FROM timeline_scheduledtask AS held  -- if shared
                        WHERE held.limit_key = key.value AND held.slot > 0  -- if shared
                    )  -- if shared
            )  -- if shared
            AND (attempt <= %(attempts)s OR reason_code IN ({at_rest}))
            AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
        ORDER BY priority, scheduled_at, id
        LIMIT %(each)s
    )
)
ORDER BY task.limit_key, task.slot = 0, task.priority, task.scheduled_at, task.id
