-- The rows from which runs are planned; see RowsToPlan in models/machine_rows.py.
SELECT {columns}
FROM timeline_scheduledtask
WHERE (
        false
        OR run_id IN (SELECT value FROM json_each(%(whole)s))  -- if whole
        OR (run_id IN (SELECT value FROM json_each(%(in_states)s)) AND state IN ({open}))  -- if in_states
        OR (run_id IN (SELECT value FROM json_each(%(in_states)s)) AND task_key IN (SELECT value FROM json_each(%(others)s)))  -- if others
        OR (  -- if visits
            run_id IN (SELECT value FROM json_each(%(in_states)s))  -- if visits
            AND task_key IN (SELECT value FROM json_each(%(bound)s))  -- if visits
            AND occurrence IN (SELECT value FROM json_each(%(visits)s))  -- if visits
        )  -- if visits
    )
    AND (state IN ({open}) OR slot > 0 OR occurrence <> '')  -- if alive
ORDER BY id
