-- Tasks that may be taken now, for some keys of a limit: tasks that hold a place already, and the first of those that wait, for
-- the places that are free.
-- The caller has locked the keys by an earlier statement (try_limits), so this statement sees all that was committed before
-- that. If a place is taken all the same, the unique index refuses it.
-- If other kinds compete for the same keys, a task is not taken when the first task of another kind comes before it and that
-- kind has a free place. That place belongs to the other task, whoever takes it.
    WITH key AS MATERIALIZED (
        SELECT limit_key FROM unnest(%(limit_keys)s::text[]) AS key(limit_key)
    ), mine AS MATERIALIZED (
        SELECT key.limit_key, task.id, task.state, task.slot
        FROM key
        CROSS JOIN LATERAL (
            SELECT id, state, slot
            FROM timeline_scheduledtask
            WHERE limit_key = key.limit_key AND slot > 0 AND state || '' = 'available' AND task_key || '' = %(task_key)s
                AND (attempt <= %(attempts)s OR reason_code IN ({at_rest}))
                AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
            ORDER BY slot
            LIMIT %(each)s
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS task
    ), free AS MATERIALIZED (
        SELECT key.limit_key, number.slot, row_number() OVER (PARTITION BY key.limit_key ORDER BY number.slot) AS place
        FROM key
        CROSS JOIN LATERAL (
            SELECT slot
            FROM generate_series(1, %(places)s) AS series(slot)
            WHERE NOT EXISTS (
                SELECT FROM timeline_scheduledtask AS held
                WHERE held.limit_key = key.limit_key AND held.slot = series.slot AND held.slot > 0
            )
            ORDER BY slot
            LIMIT GREATEST(0, LEAST(
                %(each)s - (SELECT count(*) FROM mine WHERE mine.limit_key = key.limit_key),
                %(places)s - (
                    SELECT count(*) FROM timeline_scheduledtask AS held
                    WHERE held.limit_key = key.limit_key AND held.slot > 0
                )
            ))
        ) AS number
    ), rival AS MATERIALIZED (  -- if shared
        SELECT DISTINCT ON (key.limit_key) key.limit_key, waiting.priority, waiting.scheduled_at, waiting.id  -- if shared
        FROM key  -- if shared
        CROSS JOIN unnest(%(others)s::text[], %(places_of_others)s::integer[]) AS other(task_key, places)  -- if shared
        CROSS JOIN LATERAL (  -- if shared
            SELECT priority, scheduled_at, id  -- if shared
            FROM timeline_scheduledtask  -- if shared
            WHERE state = 'available' AND task_key = other.task_key AND limit_key = key.limit_key AND limit_key > '' AND slot = 0  -- if shared
                AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if shared_on_hold
            ORDER BY priority, scheduled_at, id  -- if shared
            LIMIT 1  -- if shared
            FOR NO KEY UPDATE SKIP LOCKED  -- if shared
        ) AS waiting  -- if shared
        WHERE other.places > (  -- if shared
            SELECT count(*) FROM timeline_scheduledtask AS held  -- if shared
            WHERE held.limit_key = key.limit_key AND held.slot > 0  -- if shared
        )  -- if shared
        ORDER BY key.limit_key, waiting.priority, waiting.scheduled_at, waiting.id  -- if shared
    ), taken AS MATERIALIZED (
        SELECT room.limit_key, task.id, task.state,
            row_number() OVER (PARTITION BY room.limit_key ORDER BY task.priority, task.scheduled_at, task.id) AS place
        FROM (SELECT limit_key, count(*) AS size FROM free GROUP BY limit_key) AS room
        LEFT JOIN rival USING (limit_key)  -- if shared
        CROSS JOIN LATERAL (
            SELECT id, state, priority, scheduled_at
            FROM timeline_scheduledtask
            WHERE state = 'available' AND task_key = %(task_key)s AND limit_key = room.limit_key AND limit_key > '' AND slot = 0
                AND (priority, scheduled_at, id) < (  -- if shared
                    COALESCE(rival.priority, 32767), COALESCE(rival.scheduled_at, 'infinity'),  -- if shared
                    COALESCE(rival.id, 'ffffffff-ffff-ffff-ffff-ffffffffffff')  -- if shared
                )  -- if shared
                AND (attempt <= %(attempts)s OR reason_code IN ({at_rest}))
                AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
            ORDER BY priority, scheduled_at, id
            LIMIT room.size
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS task
    )
    SELECT id, state, slot::integer AS slot FROM mine
    UNION ALL
    SELECT taken.id, taken.state, free.slot::integer FROM taken JOIN free USING (limit_key, place)
