-- Which of some tasks are refused, or have to wait, because runs of their timeline overlap. Two parts:
-- - Tasks of a run that is not cleared and has no completed task, while an earlier run of its timeline is under way: with the
--   key of the last such run. A run is under way if one of its tasks has started, or is open and due.
-- - Tasks of a run in which a task was cancelled for this reason before: with the text of that reason. If the task itself was
--   cancelled for it and somebody has redriven it, it is not refused again.
SELECT task.id, max(earlier.key), ''
FROM timeline_scheduledtask AS task
JOIN timeline_timelinerun AS run ON run.id = task.run_id
JOIN timeline_timelinerun AS earlier
    ON earlier.timeline = run.timeline
    AND earlier.entity_label = ''
    AND earlier.entity_id = ''
    AND earlier.ended_at IS NULL
    AND earlier.once
    AND earlier.started_at < run.started_at
WHERE task.id = ANY(%(tasks)s::uuid[])
    AND NOT run.is_cleared
    AND NOT EXISTS (
        SELECT 1 FROM timeline_scheduledtask AS other
        WHERE other.run_id = run.id AND other.state = 'completed'
    )
    AND EXISTS (
        SELECT 1 FROM timeline_scheduledtask AS held
        WHERE held.run_id = earlier.id AND (
            held.started_at IS NOT NULL
            OR (held.state IN ({open}) AND (held.state <> 'scheduled' OR held.scheduled_at <= %(now)s))
        )
    )
GROUP BY task.id
UNION ALL
SELECT task.id, '', min(other.reason)
FROM timeline_scheduledtask AS task
JOIN timeline_scheduledtask AS other ON other.run_id = task.run_id AND other.reason_code = 'overlap'
WHERE task.id = ANY(%(tasks)s::uuid[])
    AND NOT EXISTS (
        SELECT 1 FROM timeline_scheduledtask AS before
        WHERE before.run_id = task.run_id
            AND before.task_key = task.task_key
            AND before.occurrence = task.occurrence
            AND before.reason_code = 'overlap'
    )
GROUP BY task.id
