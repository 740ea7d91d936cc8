-- All revisions of some tasks, in the order of the revisions, so that the caller keeps the latest of each. If one is open, it
-- is the latest.
SELECT {columns}
FROM (
    SELECT revision.*
    FROM timeline_scheduledtask AS given
    JOIN timeline_scheduledtask AS revision
        ON revision.run_id = given.run_id
        AND revision.task_key = given.task_key
        AND revision.occurrence = given.occurrence
    WHERE given.id IN (SELECT value FROM json_each(%(ids)s))
    UNION ALL
    SELECT revision.*
    FROM timeline_scheduledtask AS given
    JOIN timeline_scheduledtask AS revision
        ON revision.run_id IS NULL
        AND revision.entity_label = given.entity_label
        AND revision.entity_id = given.entity_id
        AND revision.task_key = given.task_key
        AND revision.occurrence = given.occurrence
    WHERE given.run_id IS NULL AND given.id IN (SELECT value FROM json_each(%(ids)s))
) AS found
ORDER BY revision
