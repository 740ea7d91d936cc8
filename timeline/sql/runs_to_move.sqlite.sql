-- The open runs of some machines and entities; if the runs of a machine have keys, only runs with the given key. A run that
-- began before its timeline was a machine has no state, and is left out.
SELECT {columns}
FROM json_each(%(entities)s) AS entity
CROSS JOIN json_each(%(machines)s) AS machine
CROSS JOIN timeline_timelinerun AS run
WHERE run.ended_at IS NULL
    AND run.entity_label = json_extract(entity.value, '$[0]')
    AND run.entity_id = json_extract(entity.value, '$[1]')
    AND run.timeline = json_extract(machine.value, '$[0]')
    AND run.key = COALESCE(json_extract(machine.value, '$[1]'), run.key)
    AND run.state > ''
ORDER BY run.id
