-- Everything that is open of an entity, in the lock order: first its open runs, then its tasks. The condition on the count of
-- the runs is always true; it makes PostgreSQL lock the runs before the tasks.
-- The tasks are sorted by an expression, so they are sorted after they were found. Otherwise, if statistics are stale,
-- PostgreSQL might read the whole primary key because it is in that order already.
    WITH runs AS MATERIALIZED (
        SELECT id
        FROM timeline_timelinerun
        WHERE entity_label = %(label)s AND entity_id = %(entity)s AND ended_at IS NULL
        ORDER BY id
        FOR NO KEY UPDATE
    )
    SELECT id, state
    FROM timeline_scheduledtask
    WHERE (SELECT count(*) FROM runs) >= 0
        AND entity_label = %(label)s
        AND entity_id = %(entity)s
        AND state NOT IN ({final})
        AND id <> ALL(%(spared)s::uuid[])
    ORDER BY id::text
    FOR NO KEY UPDATE
