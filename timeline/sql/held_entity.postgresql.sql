-- What is open of an entity, in the lock order: its open runs first; then tasks, sorted once found, for with stale statistics
-- PostgreSQL would walk all ids.
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
