-- At which of some places (entity, timeline and key) there was ever a run.
SELECT label.value, entity.value, timeline.value, key.value
FROM json_each(%(entity_labels)s) AS label
JOIN json_each(%(entity_ids)s) AS entity ON entity.key = label.key
JOIN json_each(%(timelines)s) AS timeline ON timeline.key = label.key
JOIN json_each(%(keys)s) AS key ON key.key = label.key
WHERE EXISTS (
    SELECT 1 FROM timeline_timelinerun AS run
    WHERE run.entity_label = label.value
        AND run.entity_id = entity.value
        AND run.timeline = timeline.value
        AND run.key = key.value
)
