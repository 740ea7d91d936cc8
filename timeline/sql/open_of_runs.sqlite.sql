-- Reads what is open of some runs.
SELECT {columns}
FROM timeline_scheduledtask
WHERE run_id IN (SELECT value FROM json_each(%(runs)s))
    AND state NOT IN ({final})
    AND id NOT IN (SELECT value FROM json_each(%(spared)s))
    AND nominal_at < %(before)s AND task_key IN (SELECT value FROM json_each(%(kinds)s))  -- if before
    AND (planned_at < %(before)s OR task_key IN (SELECT value FROM json_each(%(earlier)s)))  -- if before
ORDER BY id
