-- Which kinds have available tasks, with the most urgent priority of each kind; and whether anything is on hold. If entities
-- are on hold, their tasks are skipped.
-- There is no due time: on PostgreSQL it only says where to start the search in an index, and SQLite does without that.
SELECT task_key, MIN(priority), NULL, EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL)
FROM timeline_scheduledtask
WHERE state = 'available' AND limit_key = '' AND task_key IN (SELECT value FROM json_each(%(task_keys)s))
    AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
GROUP BY task_key
