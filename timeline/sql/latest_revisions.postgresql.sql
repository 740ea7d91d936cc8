-- The latest revision of each of some tasks. If a revision is open, it is the latest. Each task is looked up separately, as in
-- end_open_runs.
SELECT {columns}
FROM (
    SELECT latest.*
    FROM timeline_scheduledtask AS given
    CROSS JOIN LATERAL (
        (
            SELECT *
            FROM timeline_scheduledtask
            WHERE run_id = given.run_id AND task_key = given.task_key AND occurrence = given.occurrence
            ORDER BY revision DESC
            LIMIT 1
        )
        UNION ALL
        (
            SELECT *
            FROM timeline_scheduledtask
            WHERE given.run_id IS NULL
                AND run_id IS NULL
                AND entity_label = given.entity_label
                AND entity_id = given.entity_id
                AND task_key = given.task_key
                AND occurrence = given.occurrence
            ORDER BY revision DESC
            LIMIT 1
        )
    ) AS latest
    WHERE given.id = ANY(%(ids)s::uuid[])
) AS found
