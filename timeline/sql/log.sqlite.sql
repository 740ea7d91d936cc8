-- The log entries of the changes just made, in the same transaction: the rows still tell seq and attempt.
INSERT INTO timeline_logentry (task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail)
SELECT change.id, task.seq - 1, %(at)s, change.from_state, change.via, change.from_attempt, '', '', '', '{}'
FROM (
    SELECT json_extract(value, '$.id') AS id,
        json_extract(value, '$.from_state') AS from_state,
        json_extract(value, '$.via') AS via,
        json_extract(value, '$.from_attempt') AS from_attempt
    FROM json_each(%(changes)s)
) AS change
JOIN timeline_scheduledtask AS task ON task.id = change.id
WHERE change.via IS NOT NULL
UNION ALL
SELECT change.id, task.seq, %(at)s, COALESCE(change.via, change.from_state), change.to_state, task.attempt,
    COALESCE(change.actor, ''), COALESCE(change.reason_code, ''), COALESCE(change.reason, ''), COALESCE(change.detail, '{}')
FROM (
    SELECT json_extract(value, '$.id') AS id,
        json_extract(value, '$.from_state') AS from_state,
        json_extract(value, '$.via') AS via,
        json_extract(value, '$.to_state') AS to_state,
        json_extract(value, '$.actor') AS actor,
        json_extract(value, '$.reason_code') AS reason_code,
        json_extract(value, '$.reason') AS reason,
        json_extract(value, '$.detail') AS detail
    FROM json_each(%(changes)s)
) AS change
JOIN timeline_scheduledtask AS task ON task.id = change.id
