-- The last two runs of each of some timelines that start by the clock. Their keys are in the order of time.
SELECT run.*
FROM json_each(%(timelines)s) AS known
JOIN timeline_timelinerun AS run ON run.id IN (
    SELECT id
    FROM timeline_timelinerun
    WHERE entity_label = '' AND entity_id = '' AND timeline = known.value AND once
    ORDER BY key DESC
    LIMIT 2
)
