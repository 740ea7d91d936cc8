-- Locks what is open of some runs, in the lock order: sorted once found, for with stale statistics PostgreSQL would walk all ids.
SELECT id, state, attempt
FROM timeline_scheduledtask
WHERE run_id = ANY(%(runs)s::uuid[])
    AND state NOT IN ({final})
    AND id <> ALL(%(spared)s::uuid[])
ORDER BY id::text
FOR NO KEY UPDATE
