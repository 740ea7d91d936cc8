-- Open runs of machines in some states, those first that have been there longest. Each state is looked up separately, in the
-- order of an index, so that few more runs are read than are returned.
SELECT {columns}
FROM unnest(%(timelines)s::text[], %(states)s::text[]) AS asked(timeline, state)
CROSS JOIN LATERAL (
    SELECT *
    FROM timeline_timelinerun
    WHERE timeline = asked.timeline
        AND state = asked.state
        AND state > ''
        AND ended_at IS NULL
        AND (state_at, id) > (%(after_at)s::timestamptz, %(after_id)s::uuid)
    ORDER BY state_at, id
    LIMIT %(most)s
) AS run
ORDER BY run.state_at, run.id
LIMIT %(most)s
