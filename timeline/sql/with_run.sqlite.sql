-- Which of some entities have a run of a timeline and key; ended runs count only if the caller asks for them.
SELECT value
FROM json_each(%(ids)s)
WHERE EXISTS (
    SELECT 1 FROM timeline_timelinerun
    WHERE entity_label = %(label)s
        AND entity_id = value
        AND timeline = %(timeline)s
        AND key = %(key)s
        AND (ended_at IS NULL OR %(ended)s)
)
