-- The log entries of the changes just made, in the same transaction: the rows still tell seq and attempt.
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
