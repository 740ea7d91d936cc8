-- Whether anybody waits for an event of the entity of the row that is inserted. One plan for all rows of the statement: with many
-- rows it takes less than to call the function of is_awaited for each.
EXISTS (
    SELECT 1 FROM timeline_scheduledtask AS task
    WHERE task.awaits_label = timeline_event.entity_label AND task.awaits_id = timeline_event.entity_id
        AND task.awaits > '' AND task.state IN ('retryable', 'scheduled')
)
