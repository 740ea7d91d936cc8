-- The next keys, in their order, for which available tasks of a kind need a place. Each key takes one look in an index.
-- For each key also the attempt of the task that comes first: one that holds a place, or else the first of those that wait, if
-- a place is free. A task whose last attempt ended at rest counts as new (0). NULL: no task may start.
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
