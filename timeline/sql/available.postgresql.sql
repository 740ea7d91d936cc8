-- How many tasks of each kind are available, counted up to a maximum. Each kind takes one look in an index.
SELECT kind.task_key, (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM timeline_scheduledtask
        WHERE state = 'available' AND task_key = kind.task_key
        ORDER BY scheduled_at
        LIMIT %(most)s
    ) AS bounded
)
FROM unnest(%(task_keys)s::text[]) AS kind(task_key)
