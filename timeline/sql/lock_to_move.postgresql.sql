-- Lock an entity, and then what to_move finds of it, in one trip. A parameter of the function depends on the locked row, so the
-- function is called when the lock is held, and sees what is committed by then. The clock is read when the lock is held, too.
WITH held AS MATERIALIZED (
{lock}
)
SELECT held.*, its.of_run::text, its.of_task::text
FROM held
LEFT JOIN LATERAL timeline_to_move(
    %(label)s, CASE WHEN held.clock_timestamp IS NOT NULL THEN %(id)s END, %(timelines)s::text[], %(others)s::text[]
) AS its ON true
