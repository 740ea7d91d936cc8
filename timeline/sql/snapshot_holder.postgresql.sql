-- Who holds the oldest snapshot, because of which dead rows are kept; and how many dead rows the table of tasks has. Nothing is
-- read where it has few. Sessions that vacuum hold nothing, nor does this session. A role that may not read the statistics of
-- others sees no times, no state and no query of their sessions.
SELECT
    json_build_object(
        'kind', holder.kind, 'name', holder.name, 'pid', holder.pid, 'state', holder.state, 'query', holder.query,
        'since', holder.since, 'asked_at', holder.asked_at, 'dead_rows', dead.rows
    )::text
FROM (SELECT pg_stat_get_dead_tuples('timeline_scheduledtask'::regclass) AS rows) AS dead
CROSS JOIN LATERAL (
    SELECT 'session' AS kind, usename::text AS name, pid, state, left(query, %(longest)s) AS query, xact_start AS since,
        query_start AS asked_at, greatest(age(backend_xmin), age(backend_xid)) AS transactions
    FROM pg_stat_activity
    WHERE (datname = current_database() OR datid IS NULL) AND pid <> pg_backend_pid()
        AND backend_type IS DISTINCT FROM 'autovacuum worker'
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    UNION ALL
    SELECT 'prepared', owner::text, NULL, NULL, NULL, prepared, NULL, age(transaction)
    FROM pg_prepared_xacts
    WHERE database = current_database()
    UNION ALL
    SELECT 'slot', slot_name::text, active_pid, NULL, NULL, NULL, NULL, age(xmin)
    FROM pg_replication_slots
    WHERE xmin IS NOT NULL
) AS holder
WHERE dead.rows >= %(many)s
    AND CASE WHEN holder.since IS NULL THEN holder.transactions >= %(transactions)s
        ELSE holder.since < clock_timestamp() - %(long)s::interval END
ORDER BY holder.transactions DESC, holder.since
LIMIT 1
