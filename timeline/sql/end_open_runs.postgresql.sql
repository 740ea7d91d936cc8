-- Ends what is open of some timelines and entities, and says what that was. Each entity is looked up by itself: where
-- statistics are stale, PostgreSQL would look for a list of them in all runs of that kind.
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
