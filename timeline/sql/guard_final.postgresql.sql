-- What has ended stays as it ended.
CREATE OR REPLACE TRIGGER timeline_guard_final
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN (OLD.state = ANY ({final_array}::varchar[]) AND (
    NEW.state IS DISTINCT FROM OLD.state
    OR NEW.attempt IS DISTINCT FROM OLD.attempt
    OR NEW.seq IS DISTINCT FROM OLD.seq
    OR NEW.scheduled_at IS DISTINCT FROM OLD.scheduled_at
    OR NEW.finished_at IS DISTINCT FROM OLD.finished_at
    OR NEW.reason_code IS DISTINCT FROM OLD.reason_code
))
EXECUTE FUNCTION timeline_refuse('timeline: a task that has ended does not change')
