-- Which kinds have available tasks that need a place of a limit, and whether anything is on hold.
SELECT kind.value, EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL)
FROM json_each(%(task_keys)s) AS kind
WHERE EXISTS (
    SELECT 1 FROM timeline_scheduledtask
    WHERE state = 'available' AND task_key = kind.value AND limit_key > ''
)
