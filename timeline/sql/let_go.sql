-- Write down that tasks of a kind were let in when a person released its brake. They are the tasks that were due then.
-- Left out are tasks that were made later (their ids are greater), and tasks with a later log entry in which the state did not
-- change: somebody may have moved their due time since. These do not pass the brake without being counted.
-- A task may have been let in by a look that was under way and read the clock later. Such a note gets the earlier time.
-- The rows are inserted in the order of their ids, as looks insert them. Otherwise the two could wait for each other (a
-- deadlock).
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
