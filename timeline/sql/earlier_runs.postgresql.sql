-- At which of some places (entity, timeline and key) there was ever a run. Each place is looked up separately, as in
-- end_open_runs.
SELECT place.label, place.entity, place.timeline, place.key
FROM unnest(%(entity_labels)s::text[], %(entity_ids)s::text[], %(timelines)s::text[], %(keys)s::text[])
    AS place(label, entity, timeline, key)
WHERE EXISTS (
    SELECT FROM timeline_timelinerun
    WHERE entity_label = place.label AND entity_id = place.entity AND timeline = place.timeline AND key = place.key
    OFFSET 0
)
