-- Refuse to delete a run that has tasks.
CREATE OR REPLACE TRIGGER timeline_keep_run_of_task
AFTER DELETE ON timeline_timelinerun
FOR EACH ROW
EXECUTE FUNCTION timeline_keep('timeline_scheduledtask', 'run_id')
