-- The waiting task that is due for the longest time: its due time and id; whether there are notes about tasks to wake; and the
-- due time and id of the first available task. Each search begins at a place that the caller knows: see store/floors.py. And how
-- many dead rows the table has, as far as PostgreSQL has counted.
SELECT waiting.scheduled_at, waiting.id, EXISTS (SELECT 1 FROM timeline_wake), available.scheduled_at, available.id,
    pg_stat_get_dead_tuples('timeline_scheduledtask'::regclass)
FROM (SELECT) AS one
LEFT JOIN LATERAL (
    SELECT scheduled_at, id
    FROM timeline_scheduledtask
    WHERE state IN ({waiting}) AND scheduled_at <= %(at)s
        AND (scheduled_at, id) >= (%(since)s::timestamptz, %(since_id)s::uuid)
    ORDER BY scheduled_at, id
    LIMIT 1
) AS waiting ON true
LEFT JOIN LATERAL (
    SELECT scheduled_at, id
    FROM timeline_scheduledtask
    WHERE state = 'available' AND (scheduled_at, id) >= (%(available_since)s::timestamptz, %(available_since_id)s::uuid)
    ORDER BY scheduled_at, id
    LIMIT 1
) AS available ON true
