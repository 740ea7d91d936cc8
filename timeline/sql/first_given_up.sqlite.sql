-- The machine time, when the first of the expired leases ran out, and whether a worker has given no sign for too long.
SELECT
    now.machine_time,
    (
        SELECT lease_expires_at
        FROM timeline_scheduledtask
        WHERE state IN ({leased}) AND lease_expires_at < now.machine_time
        ORDER BY lease_expires_at, id
        LIMIT 1
    ),
    EXISTS (
        SELECT 1
        FROM timeline_worker
        WHERE seen_at < strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', -%(missed_after)s || ' seconds')
    )
FROM (SELECT strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now') AS machine_time) AS now
