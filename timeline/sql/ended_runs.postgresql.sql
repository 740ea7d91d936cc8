-- Runs that ended before a date and have nothing open, nor keep a limit closed, what ended first before the others, locked. Each
-- is looked up by itself: where few are found, PostgreSQL would read all tasks that are open.
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
