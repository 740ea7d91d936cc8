-- End the open runs of some timelines and entities, and return them. OFFSET 0 makes PostgreSQL look up each entity separately.
-- If statistics are stale, it would otherwise search all runs of that kind of entity for a list of ids.
UPDATE timeline_timelinerun
SET ended_at = %(now)s, end_code = %(code)s, end_reason = %(reason)s
WHERE id = ANY(ARRAY(
    SELECT run.id
    FROM unnest(%(ids)s::text[]) AS entity(id)
    CROSS JOIN LATERAL (
        SELECT id
        FROM timeline_timelinerun
        WHERE ended_at IS NULL
            AND entity_label = %(label)s
            AND entity_id = entity.id
            AND timeline = ANY(%(timelines)s::text[])
            AND (%(key)s::text IS NULL OR key = %(key)s)
        OFFSET 0
    ) AS run
))
RETURNING *
