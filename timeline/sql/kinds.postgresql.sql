-- For each kind: how many tasks are claimed and not started; how many of these were sent recently and still have a valid lease;
-- and how long its handler takes for one task. If the caller knows a time at which no lease had expired, the index is not read
-- before that.
SELECT kind.task_key, coalesce(pending.tasks, 0), coalesce(pending.lately, 0), pace.seconds
FROM unnest(%(task_keys)s::text[]) AS kind(task_key)
LEFT JOIN (
    SELECT
        task_key,
        count(*) AS tasks,
        count(*) FILTER (
            WHERE sent_at >= clock_timestamp() - %(lately)s::interval
                AND lease_expires_at > clock_timestamp()
        ) AS lately
    FROM timeline_scheduledtask
    WHERE state = 'pending' AND lease_expires_at >= coalesce(%(leases_valid_at)s::timestamptz, '-infinity')
    GROUP BY task_key
) AS pending USING (task_key)
LEFT JOIN timeline_pace AS pace USING (task_key)
