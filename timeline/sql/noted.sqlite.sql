-- Pairs of a task that waits for an event of another entity, and a note that makes it due. Tasks that are due already are left
-- out, because nobody has to wake them.
SELECT task.id, wake.id
FROM timeline_wake AS wake
CROSS JOIN timeline_scheduledtask AS task
    ON task.awaits_label = wake.entity_label AND task.awaits_id = wake.entity_id
WHERE wake.id IN (SELECT CAST(value AS INTEGER) FROM json_each(%(wakes)s))
    AND task.awaits > ''
    AND task.state IN ({waiting})
    AND task.awaits_other
    AND task.scheduled_at > {at}
    AND (wake.name = '' OR instr(' ' || task.awaits || ' ', ' ' || wake.name || ' ') > 0 AND task.awaits_key IN ('', wake.key))
LIMIT %(most)s
