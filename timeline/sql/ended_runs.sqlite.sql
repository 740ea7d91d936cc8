-- Find runs to delete, the first ended first: they ended before a date, their rows were not kept by an earlier pruning, none of
-- their tasks is open, and none holds a place of a limit.
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
