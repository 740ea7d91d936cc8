-- The run that has ended last, of each of some machines and entities; of a machine whose runs have keys, of one key.
SELECT *
FROM timeline_timelinerun
WHERE id IN (
    SELECT (
        SELECT run.id
        FROM timeline_timelinerun AS run
        WHERE run.entity_label = json_extract(entity.value, '$[0]')
            AND run.entity_id = json_extract(entity.value, '$[1]')
            AND run.timeline = json_extract(machine.value, '$[0]')
            AND run.key = COALESCE(json_extract(machine.value, '$[1]'), run.key)
            AND run.ended_at IS NOT NULL
            AND run.state > ''
        ORDER BY run.ended_at DESC, run.id DESC
        LIMIT 1
    )
    FROM json_each(%(entities)s) AS entity
    CROSS JOIN json_each(%(machines)s) AS machine
)
