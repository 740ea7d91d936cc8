-- Find and lock runs to delete, the first ended first: they ended before a date, their rows were not kept by an earlier
-- pruning, none of their tasks is open, and none holds a place of a limit. Runs that somebody else has locked are skipped.
-- OFFSET 0 makes PostgreSQL look up each run separately. If it expects to find few, it would otherwise read all open tasks.
SELECT id
FROM timeline_timelinerun AS run
WHERE ended_at < %(before)s
    AND NOT pruned
    AND NOT EXISTS (
        SELECT FROM timeline_scheduledtask
        WHERE run_id = run.id AND finished_at IS NULL
        OFFSET 0
    )
    AND NOT EXISTS (
        SELECT FROM timeline_scheduledtask
        WHERE run_id = run.id AND slot > 0
        OFFSET 0
    )
ORDER BY ended_at, id
LIMIT %(most)s
FOR NO KEY UPDATE SKIP LOCKED
