-- The oldest transaction that is open, and the first that has not begun; a number each, which only grows in one cluster.
SELECT pg_snapshot_xmin(snapshot)::text::bigint, pg_snapshot_xmax(snapshot)::text::bigint,
    (SELECT coalesce(max(id), 0) FROM timeline_logentry)
FROM pg_current_snapshot() AS snapshot
