-- Which kinds have available tasks, the first priority of each, and whether anything is on hold; if entities are, their tasks are
-- passed over.
-- Its due time is of no use here: tasks are read, then written.
SELECT task_key, MIN(priority), NULL, EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL)
FROM timeline_scheduledtask
WHERE state = 'available' AND limit_key = '' AND task_key IN (SELECT value FROM json_each(%(task_keys)s))
    AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
GROUP BY task_key
