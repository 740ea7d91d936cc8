-- The timelines that have or had runs: from each to the next one, in the order of the index of a timeline's runs.
WITH RECURSIVE there (timeline) AS (
    SELECT (SELECT (timeline || '') FROM timeline_timelinerun ORDER BY (timeline || '') LIMIT 1)
    UNION ALL
    SELECT (
        SELECT (timeline || '') FROM timeline_timelinerun
        WHERE (timeline || '') > there.timeline ORDER BY (timeline || '') LIMIT 1
    )
    FROM there
    WHERE there.timeline IS NOT NULL
)
SELECT timeline FROM there WHERE timeline IS NOT NULL
