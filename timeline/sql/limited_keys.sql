-- For what tasks of a kind wait: so many keys, in order, from one on, each found by one probe of an index. And how often the task
-- was tried that comes first: one that holds a place already, or the first of those that wait, if a place is free; NULL: none.
WITH RECURSIVE key AS (
    SELECT (
        SELECT min(limit_key) FROM timeline_scheduledtask
        WHERE state = 'available' AND task_key = %(task_key)s AND limit_key > '' AND limit_key > %(after)s
    ) AS limit_key
    UNION ALL
    SELECT (
        SELECT min(limit_key) FROM timeline_scheduledtask
        WHERE state = 'available' AND task_key = %(task_key)s AND limit_key > '' AND limit_key > key.limit_key
    )
    FROM key
    WHERE key.limit_key IS NOT NULL
),
seen AS (
    SELECT limit_key FROM key WHERE limit_key IS NOT NULL LIMIT %(most)s
)
SELECT
    seen.limit_key,
    COALESCE(
        (
            SELECT CASE WHEN reason_code IN ({at_rest}) THEN 0 ELSE attempt END FROM timeline_scheduledtask
            WHERE limit_key = seen.limit_key AND slot > 0 AND state = 'available' AND task_key = %(task_key)s
                AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
            ORDER BY slot
            LIMIT 1
        ),
        CASE WHEN (
            SELECT count(*) FROM timeline_scheduledtask WHERE limit_key = seen.limit_key AND slot > 0
        ) < %(places)s THEN (
            SELECT CASE WHEN reason_code IN ({at_rest}) THEN 0 ELSE attempt END FROM timeline_scheduledtask
            WHERE state = 'available' AND task_key = %(task_key)s AND limit_key = seen.limit_key AND limit_key > '' AND slot = 0
                AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
            ORDER BY priority, scheduled_at, id
            LIMIT 1
        ) END
    ) AS attempt
FROM seen
ORDER BY seen.limit_key
