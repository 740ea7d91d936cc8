-- Refuse to delete an event that started a run.
CREATE OR REPLACE TRIGGER timeline_keep_event_of_run
AFTER DELETE ON timeline_event
FOR EACH ROW
EXECUTE FUNCTION timeline_keep('timeline_timelinerun', 'started_by_id')
