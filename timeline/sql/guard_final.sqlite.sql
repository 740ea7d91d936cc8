-- A task that has ended stays as it ended.
CREATE TRIGGER timeline_guard_final
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN OLD.state IN ({final}) AND (
    NEW.state IS NOT OLD.state
    OR NEW.attempt IS NOT OLD.attempt
    OR NEW.seq IS NOT OLD.seq
    OR NEW.scheduled_at IS NOT OLD.scheduled_at
    OR NEW.finished_at IS NOT OLD.finished_at
    OR NEW.reason_code IS NOT OLD.reason_code
)
BEGIN
    SELECT RAISE(ABORT, 'timeline: a task that has ended does not change');
END
