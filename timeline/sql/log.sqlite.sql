-- Write the log entries of the changes that transition.sqlite.sql has just made. This is in the same transaction, so the rows
-- still have the seq and the attempt of these changes.
WITH changed AS (
    SELECT task.id, task.seq, task.state, task.attempt,
        change.via AS via,  -- if via
        change.detail AS detail,  -- if detail
        change.actor AS said_by, change.reason_code AS said_code, change.reason AS said,  -- if reason_code
        change.from_state AS from_state
    FROM json_each(%(changes)s) AS change
    JOIN timeline_scheduledtask AS task ON task.id = change.id
)
{entries}
