-- How many tasks of each kind are available, counted up to a maximum. Each kind takes one look in an index.
SELECT kind.value, (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM timeline_scheduledtask
        WHERE state = 'available' AND task_key = kind.value
        ORDER BY scheduled_at
        LIMIT %(most)s
    )
)
FROM json_each(%(task_keys)s) AS kind
