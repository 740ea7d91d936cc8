-- Refuse to delete an event that an ad hoc task names as its cause. The rows of a run name the event that started the run, and
-- that event is kept by keep_event_of_run.
CREATE OR REPLACE TRIGGER timeline_keep_event_of_task
AFTER DELETE ON timeline_event
FOR EACH ROW
EXECUTE FUNCTION timeline_keep('timeline_scheduledtask', 'cause_id', 'run_id IS NULL')
