-- Whether a task waits for an event of the entity of the row that is inserted. See function_is_awaited.
timeline_is_awaited(timeline_event.entity_label, timeline_event.entity_id)
