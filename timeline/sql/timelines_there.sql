-- The different timelines of the runs that exist, open or ended. Each takes one look in an index: from one name to the next.
-- The index is on the expression, so each comparison must have the same expression.
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
