-- Find ad hoc tasks to delete, in the order in which their first revisions ended: all revisions ended before a date, and none
-- holds a place of a limit. Returns the id of the first revision with the id of each revision. Each is looked up separately, as
-- in ended_runs.
SELECT first.id, revision.id
FROM (
    SELECT *
    FROM timeline_scheduledtask AS task
    WHERE run_id IS NULL AND revision = 1 AND finished_at < %(before)s
        AND NOT EXISTS (
            SELECT FROM timeline_scheduledtask
            WHERE run_id IS NULL
                AND entity_label = task.entity_label
                AND entity_id = task.entity_id
                AND task_key = task.task_key
                AND occurrence = task.occurrence
                AND (finished_at IS NULL OR finished_at >= %(before)s OR slot > 0)
            OFFSET 0
        )
    ORDER BY finished_at, id
    LIMIT %(most)s
) AS first
CROSS JOIN LATERAL (
    SELECT id
    FROM timeline_scheduledtask
    WHERE run_id IS NULL
        AND entity_label = first.entity_label
        AND entity_id = first.entity_id
        AND task_key = first.task_key
        AND occurrence = first.occurrence
    OFFSET 0
) AS revision
