-- The machine time, when the first of the expired leases ran out, and whether a worker has given no sign for too long.
-- ORDER BY makes PostgreSQL read the index from its beginning, whatever the statistics say; or from a time that the caller knows:
-- see store/floors.py. OFFSET 0: the clock is read only once.
SELECT
    now.machine_time,
    (
        SELECT lease_expires_at
        FROM timeline_scheduledtask
        WHERE state IN ({leased}) AND lease_expires_at < now.machine_time AND lease_expires_at >= %(since)s::timestamptz
        ORDER BY lease_expires_at, id
        LIMIT 1
    ),
    EXISTS (SELECT FROM timeline_worker WHERE seen_at < now.machine_time - %(missed_after)s::interval)
FROM (SELECT clock_timestamp() AS machine_time OFFSET 0) AS now
