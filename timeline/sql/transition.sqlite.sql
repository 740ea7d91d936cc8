-- One write for any number of tasks, each guarded by the state and attempt it was decided on; its rules: columns.sql. Each element
-- of the JSON array is one change. The log entries follow: log.sqlite.sql.
UPDATE timeline_scheduledtask AS task
SET
{rules}
FROM json_each(%(changes)s) AS change
WHERE task.id = change.id
    AND task.state = change.from_state
    AND task.attempt = change.from_attempt
RETURNING {columns}
