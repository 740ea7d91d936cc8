-- The number of the oldest open transaction, the number that the next new transaction gets, and the id of the last log entry.
-- In one cluster, the numbers of transactions only grow.
SELECT pg_snapshot_xmin(snapshot)::text::bigint, pg_snapshot_xmax(snapshot)::text::bigint,
    (SELECT coalesce(max(id), 0) FROM timeline_logentry)
FROM pg_current_snapshot() AS snapshot
