-- What time it is, when the lease ran out that ran out first, and whether a worker is missed. In order, so that the index is read
-- from its beginning, whatever the statistics say.
SELECT
    now.machine_time,
    (
        SELECT lease_expires_at
        FROM timeline_scheduledtask
        WHERE state IN ({leased}) AND lease_expires_at < now.machine_time
        ORDER BY lease_expires_at, id
        LIMIT 1
    ),
    EXISTS (SELECT FROM timeline_worker WHERE seen_at < now.machine_time - %(missed_after)s::interval)
FROM (SELECT clock_timestamp() AS machine_time OFFSET 0) AS now
