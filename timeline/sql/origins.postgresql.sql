-- The way back of each of some tasks over its earlier revisions, as far as none of them completed; the last step back is the
-- earliest.
WITH RECURSIVE way (task_id, at, before, steps) AS (
    SELECT id, id, previous_id, 0
    FROM timeline_scheduledtask
    WHERE id = ANY(%(ids)s::uuid[])
    UNION ALL
    SELECT way.task_id, earlier.id, earlier.previous_id, way.steps + 1
    FROM way
    JOIN timeline_scheduledtask AS earlier ON earlier.id = way.before
    WHERE earlier.state <> 'completed'
)
SELECT task_id, at
FROM way
ORDER BY steps
