-- Change any number of tasks. Each element of the JSON array is one change. It is made only if the row still has the state and
-- the attempt for which it was decided. The rules are in columns.sql; the log entries are written next, by log.sqlite.sql.
UPDATE timeline_scheduledtask AS task
SET
{rules}
FROM json_each(%(changes)s) AS change
WHERE task.id = change.id
    AND task.state = change.from_state
    AND task.attempt = change.from_attempt
RETURNING {columns}
