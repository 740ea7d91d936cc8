-- The run that ended last, for each of some machines and entities; if the runs of a machine have keys, of the runs with the
-- given key.
SELECT {columns}
FROM timeline_timelinerun AS run
WHERE run.id IN (
    SELECT (
        SELECT ended.id
        FROM timeline_timelinerun AS ended
        WHERE ended.entity_label = json_extract(entity.value, '$[0]')
            AND ended.entity_id = json_extract(entity.value, '$[1]')
            AND ended.timeline = json_extract(machine.value, '$[0]')
            AND ended.key = COALESCE(json_extract(machine.value, '$[1]'), ended.key)
            AND ended.ended_at IS NOT NULL
            AND ended.state > ''
        ORDER BY ended.ended_at DESC, ended.id DESC
        LIMIT 1
    )
    FROM json_each(%(entities)s) AS entity
    CROSS JOIN json_each(%(machines)s) AS machine
)
