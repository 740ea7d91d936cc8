-- For each kind: how many tasks are claimed and not started; how many of these were sent recently and still have a valid lease;
-- and how long its handler takes for one task.
SELECT kind.value, coalesce(pending.tasks, 0), coalesce(pending.lately, 0), pace.seconds
FROM json_each(%(task_keys)s) AS kind
LEFT JOIN (
    SELECT
        task_key,
        count(*) AS tasks,
        sum(
            sent_at >= strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %(lately)s)
            AND lease_expires_at > strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')
        ) AS lately
    FROM timeline_scheduledtask
    WHERE state = 'pending'
    GROUP BY task_key
) AS pending ON pending.task_key = kind.value
LEFT JOIN timeline_pace AS pace ON pace.task_key = kind.value
