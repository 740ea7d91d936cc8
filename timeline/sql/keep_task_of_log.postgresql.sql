-- Refuse to delete a task that has entries in the log.
CREATE OR REPLACE TRIGGER timeline_keep_task_of_log
AFTER DELETE ON timeline_scheduledtask
FOR EACH ROW
EXECUTE FUNCTION timeline_keep('timeline_logentry', 'task_id')
