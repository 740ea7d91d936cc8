-- Waiting tasks that wait for an event of their own entity, for some entities. Tasks that are due already are left out, because
-- nobody has to wake them. There is only one writer, so nothing has to be locked.
SELECT {columns}
FROM timeline_scheduledtask
WHERE id IN (
    SELECT task.id
    FROM json_each(%(entities)s) AS entity
    CROSS JOIN timeline_scheduledtask AS task
        ON task.awaits_label = json_extract(entity.value, '$[0]') AND task.awaits_id = json_extract(entity.value, '$[1]')
    WHERE task.awaits > ''
        AND task.state IN ({waiting})
        AND NOT task.awaits_other
        AND task.scheduled_at > %(at)s
        AND instr(' ' || task.awaits || ' ', ' ' || %(name)s || ' ') > 0
        AND task.awaits_key IN ('', %(key)s)
)
ORDER BY id
