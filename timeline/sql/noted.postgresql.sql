-- Pairs of a task that waits for an event of another entity, and a note that makes it due. Tasks that are due already are left
-- out, because nobody has to wake them. OFFSET 0: each entity is looked up separately, in the index of the tasks that wait for
-- events.
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
