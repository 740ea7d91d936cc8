-- Read the open tasks of some runs. With "before", only tasks of some kinds whose time is before that.
SELECT {columns}
FROM timeline_scheduledtask
WHERE run_id IN (SELECT value FROM json_each(%(runs)s))
    AND state NOT IN ({final})
    AND id NOT IN (SELECT value FROM json_each(%(spared)s))
    AND nominal_at < %(before)s AND task_key IN (SELECT value FROM json_each(%(kinds)s))  -- if before
    AND (planned_at < %(before)s OR task_key IN (SELECT value FROM json_each(%(earlier)s)))  -- if before
ORDER BY id
