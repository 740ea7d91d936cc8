-- The rows from which runs are planned; see RowsToPlan in models/machine_rows.py. If they are locked, this is in the lock order: they
-- are sorted after they were found, as in held_entity.
SELECT {columns}
FROM timeline_scheduledtask
WHERE (
        false
        OR run_id = ANY(%(whole)s::uuid[])  -- if whole
        OR (run_id = ANY(%(in_states)s::uuid[]) AND state IN ({open}))  -- if in_states
        OR (run_id = ANY(%(in_states)s::uuid[]) AND task_key = ANY(%(others)s::text[]))  -- if others
        OR (run_id = ANY(%(in_states)s::uuid[]) AND task_key = ANY(%(bound)s::text[]) AND occurrence = ANY(%(visits)s::text[]))  -- if visits
    )
    AND (state IN ({open}) OR slot > 0 OR occurrence <> '')  -- if alive
ORDER BY id::text
FOR NO KEY UPDATE  -- if locked
