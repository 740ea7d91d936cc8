-- The last two runs of each of some timelines that start by the clock. Their keys are in the order of time.
SELECT run.*
FROM unnest(%(timelines)s::text[]) AS known(timeline)
CROSS JOIN LATERAL (
    SELECT *
    FROM timeline_timelinerun
    WHERE entity_label = '' AND entity_id = '' AND timeline = known.timeline AND once
    ORDER BY key DESC
    LIMIT 2
) AS run
