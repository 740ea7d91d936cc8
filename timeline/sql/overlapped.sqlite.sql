-- Which of some tasks are of a run of which nothing has begun, while an earlier one of its timeline is under way; or of a
-- run of which that was said before.
SELECT task.id, min(earlier.key), ''
FROM timeline_scheduledtask AS task
JOIN timeline_timelinerun AS run ON run.id = task.run_id
JOIN timeline_timelinerun AS earlier
    ON earlier.timeline = run.timeline
    AND earlier.entity_label = ''
    AND earlier.entity_id = ''
    AND earlier.ended_at IS NULL
    AND earlier.once
    AND earlier.started_at < run.started_at
WHERE task.id IN (SELECT value FROM json_each(%(tasks)s))
    AND task.failures = 0
    AND NOT EXISTS (
        SELECT 1 FROM timeline_scheduledtask AS other
        WHERE other.run_id = run.id AND other.id <> task.id AND other.attempt > 0 AND other.reason_code <> 'overlap'
    )
    AND EXISTS (
        SELECT 1 FROM timeline_scheduledtask AS held
        WHERE held.run_id = earlier.id AND held.state <> 'scheduled'
    )
GROUP BY task.id
UNION ALL
SELECT task.id, '', min(other.reason)
FROM timeline_scheduledtask AS task
JOIN timeline_scheduledtask AS other ON other.run_id = task.run_id AND other.reason_code = 'overlap'
WHERE task.id IN (SELECT value FROM json_each(%(tasks)s))
GROUP BY task.id
