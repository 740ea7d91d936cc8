-- End the open runs of some timelines and entities, and return them.
UPDATE timeline_timelinerun
SET ended_at = %(now)s, end_code = %(code)s, end_reason = %(reason)s
WHERE ended_at IS NULL
    AND entity_label = %(label)s
    AND entity_id IN (SELECT value FROM json_each(%(ids)s))
    AND timeline IN (SELECT value FROM json_each(%(timelines)s))
    AND (%(key)s IS NULL OR key = %(key)s)
RETURNING *
