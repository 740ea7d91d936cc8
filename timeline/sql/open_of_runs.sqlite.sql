-- Reads what is open of some runs.
SELECT {columns}
FROM timeline_scheduledtask
WHERE run_id IN (SELECT value FROM json_each(%(runs)s))
    AND state NOT IN ({final})
    AND id NOT IN (SELECT value FROM json_each(%(spared)s))
ORDER BY id
