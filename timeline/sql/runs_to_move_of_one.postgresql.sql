-- Lock the open runs of some machines and one entity, in the order of their ids. If the runs of no machine have keys,
-- runs_to_move finds the same, but planning this statement takes a quarter of the time.
-- A run that began before its timeline was a machine has no state, and is left out.
SELECT {columns}
FROM timeline_timelinerun AS run
WHERE ended_at IS NULL
    AND entity_label = %(label)s
    AND entity_id = %(id)s
    AND timeline = ANY(%(timelines)s::text[])
    AND state > ''
ORDER BY id
FOR NO KEY UPDATE
