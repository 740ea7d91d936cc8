-- Let go some of what was due of a kind when a person released its brake: by id, so that nothing that is given such a time later
-- is among it. What was made or moved since is not either. What a look has let in that was under way, and read the clock later,
-- is let go as well. In order of ids, as looks let in, so that none is in a deadlock with it.
INSERT INTO timeline_admission (task_id, task_key, at)
SELECT id, task_key, %(at)s
FROM (
    SELECT task.id, task.task_key
    FROM timeline_scheduledtask AS task
    WHERE task.task_key = %(task_key)s AND task.state IN ({open}) AND task.scheduled_at <= %(at)s
        AND task.id < %(made_before)s
        AND NOT EXISTS (SELECT 1 FROM timeline_admission AS known WHERE known.task_id = task.id AND known.at <= %(at)s)
        AND NOT EXISTS (
            SELECT 1 FROM timeline_logentry AS entry
            WHERE entry.task_id = task.id AND entry.from_state = entry.to_state AND entry.at > %(at)s
        )
    LIMIT %(most)s
) AS due
ORDER BY id
ON CONFLICT (task_id) DO UPDATE
SET at = CASE WHEN timeline_admission.at > excluded.at THEN excluded.at ELSE timeline_admission.at END
