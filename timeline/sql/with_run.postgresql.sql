-- Which of some entities have a run of a timeline and key; ended runs count only if the caller asks for them. Each entity is
-- looked up separately, as in end_open_runs.
SELECT entity.id
FROM unnest(%(ids)s::text[]) AS entity(id)
WHERE EXISTS (
    SELECT FROM timeline_timelinerun
    WHERE entity_label = %(label)s
        AND entity_id = entity.id
        AND timeline = %(timeline)s
        AND key = %(key)s
        AND (ended_at IS NULL OR %(ended)s)
    OFFSET 0
)
