-- Which kinds have available tasks that need a place of a limit, and whether anything is on hold.
SELECT kind.task_key, EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL)
FROM unnest(%(task_keys)s::text[]) AS kind(task_key)
WHERE EXISTS (
    SELECT FROM timeline_scheduledtask
    WHERE state = 'available' AND task_key = kind.task_key AND limit_key > ''
    OFFSET 0
)
