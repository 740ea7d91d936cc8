-- When the lease ran out that ran out first. In order, so that the index is read from its beginning, whatever statistics say.
SELECT lease_expires_at
FROM timeline_scheduledtask
WHERE state IN ({leased}) AND lease_expires_at < clock_timestamp()
ORDER BY lease_expires_at, id
LIMIT 1
