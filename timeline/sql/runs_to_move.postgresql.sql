-- Lock the open runs of some machines and entities, in the order of their ids. Each entity is looked up separately, as in
-- end_open_runs; if the runs of a machine have keys, only runs with the given key.
-- A run that began before its timeline was a machine has no state, and is left out.
SELECT {columns}
FROM timeline_timelinerun AS run
WHERE run.ended_at IS NULL
    AND run.id = ANY(ARRAY(
        SELECT found.id
        FROM unnest(%(labels)s::text[], %(ids)s::text[]) AS entity(label, id)
        CROSS JOIN unnest(%(timelines)s::text[], %(keys)s::text[]) AS machine(timeline, key)
        CROSS JOIN LATERAL (
            SELECT id
            FROM timeline_timelinerun
            WHERE machine.key IS NULL
                AND ended_at IS NULL
                AND entity_label = entity.label
                AND entity_id = entity.id
                AND timeline = machine.timeline
                AND state > ''
            UNION ALL
            SELECT id
            FROM timeline_timelinerun
            WHERE ended_at IS NULL
                AND entity_label = entity.label
                AND entity_id = entity.id
                AND timeline = machine.timeline
                AND key = machine.key
                AND state > ''
            OFFSET 0
        ) AS found
    ))
ORDER BY run.id
FOR NO KEY UPDATE
