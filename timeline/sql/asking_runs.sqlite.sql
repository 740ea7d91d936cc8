-- Open runs of machines in some states, those first that have been there longest.
SELECT {columns}
FROM json_each(%(asked)s) AS asked
CROSS JOIN timeline_timelinerun AS run
WHERE run.timeline = json_extract(asked.value, '$[0]')
    AND run.state = json_extract(asked.value, '$[1]')
    AND run.state > ''
    AND run.ended_at IS NULL
    AND (run.state_at, run.id) > (%(after_at)s, %(after_id)s)
ORDER BY run.state_at, run.id
LIMIT %(most)s
