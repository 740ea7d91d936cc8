-- Runs that ended before a date and have nothing open, nor keep a limit closed, what ended first before the others.
SELECT id
FROM timeline_timelinerun AS run
WHERE ended_at < %(before)s
    AND NOT pruned
    AND NOT EXISTS (SELECT 1 FROM timeline_scheduledtask WHERE run_id = run.id AND finished_at IS NULL)
    AND NOT EXISTS (
        SELECT 1 FROM timeline_scheduledtask
        WHERE run_id = run.id AND slot > 0
    )
ORDER BY ended_at, id
LIMIT %(most)s
