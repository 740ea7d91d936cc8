-- The run that ended last, for each of some machines and entities; if the runs of a machine have keys, of the runs with the
-- given key.
SELECT {columns}
FROM unnest(%(labels)s::text[], %(ids)s::text[]) AS entity(label, id)
CROSS JOIN unnest(%(timelines)s::text[], %(keys)s::text[]) AS machine(timeline, key)
CROSS JOIN LATERAL (
    SELECT *
    FROM timeline_timelinerun
    WHERE entity_label = entity.label
        AND entity_id = entity.id
        AND timeline = machine.timeline
        AND (machine.key IS NULL OR key = machine.key)
        AND ended_at IS NOT NULL
        AND state > ''
    ORDER BY ended_at DESC, id DESC
    LIMIT 1
) AS run
