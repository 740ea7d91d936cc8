-- The first available task of each kind in each of some ranges of its queue: its priority, due time and id; and whether anything
-- is on hold, and how many dead rows the table has. If entities are on hold, their tasks are skipped.
-- A range begins at a place and ends before a priority; without these it is all of a kind. Those of one kind leave out only parts
-- of the index that are known to be read in vain: see store/floors.py.
SELECT range.task_key, first.priority, first.scheduled_at, first.id, EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL),
    pg_stat_get_dead_tuples('timeline_scheduledtask'::regclass)
FROM unnest(
    %(task_keys)s::text[], %(priorities)s::smallint[], %(since)s::timestamptz[], %(since_ids)s::uuid[], %(before)s::integer[]
) AS range(task_key, priority, since, since_id, before)
CROSS JOIN LATERAL (
    SELECT priority, scheduled_at, id
    FROM timeline_scheduledtask
    WHERE state = 'available' AND limit_key = '' AND task_key = range.task_key
        AND (priority, scheduled_at, id) >= (
            COALESCE(range.priority, -32768), COALESCE(range.since, '-infinity'),
            COALESCE(range.since_id, '00000000-0000-0000-0000-000000000000')
        )
        AND priority < COALESCE(range.before, 32768)
        AND (entity_label, entity_id) NOT IN ({entities_on_hold})  -- if on_hold
    ORDER BY priority, scheduled_at, id
    LIMIT 1
) AS first
