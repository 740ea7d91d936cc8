-- Tasks of others that some notes make due, each with the note; what is due already needs no waking. Those of each entity are
-- looked up in the index of those who wait.
SELECT task.id, wake.id
FROM timeline_wake AS wake
CROSS JOIN LATERAL (
    SELECT id
    FROM timeline_scheduledtask
    WHERE awaits_label = wake.entity_label
        AND awaits_id = wake.entity_id
        AND awaits > ''
        AND state IN ({waiting})
        AND awaits_other
        AND scheduled_at > {at}
        AND (wake.name = '' OR wake.name = ANY(string_to_array(awaits, ' ')) AND awaits_key IN ('', wake.key))
    OFFSET 0
) AS task
WHERE wake.id = ANY(%(wakes)s::bigint[])
LIMIT %(most)s
