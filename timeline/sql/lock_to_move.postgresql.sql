-- An entity, and then what to_move finds of it, in one trip. The function is asked once the lock is had, since it is told of the
-- entity by what was locked; it sees what there is by then. So does the clock.
WITH held AS MATERIALIZED (
{lock}
)
SELECT held.*, its.of_run::text, its.of_task::text
FROM held
LEFT JOIN LATERAL timeline_to_move(
    %(label)s, CASE WHEN held.clock_timestamp IS NOT NULL THEN %(id)s END, %(timelines)s::text[], %(others)s::text[]
) AS its ON true
