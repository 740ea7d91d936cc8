-- Whether a task waits for an event of the entity of the row that is inserted. This has one plan for all rows of the statement.
-- For many rows that takes less time than a call of the function in is_awaited for each row. SQLite always uses this.
EXISTS (
    SELECT 1 FROM timeline_scheduledtask AS task
    WHERE task.awaits_label = timeline_event.entity_label AND task.awaits_id = timeline_event.entity_id
        AND task.awaits > '' AND task.state IN ('retryable', 'scheduled')
)
