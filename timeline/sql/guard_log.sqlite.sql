-- The entries of the log do not change. Only the reason and the actor may be made empty. The detail is not compared, because
-- erasing removes texts from it. Deleting entries is not refused here: pruning does it.
CREATE TRIGGER timeline_guard_log
BEFORE UPDATE ON timeline_logentry
FOR EACH ROW
WHEN NEW.id IS NOT OLD.id
    OR NEW.task_id IS NOT OLD.task_id
    OR NEW.seq IS NOT OLD.seq
    OR NEW.at IS NOT OLD.at
    OR NEW.from_state IS NOT OLD.from_state
    OR NEW.to_state IS NOT OLD.to_state
    OR NEW.attempt IS NOT OLD.attempt
    OR NEW.reason_code IS NOT OLD.reason_code
    OR NEW.reason NOT IN ('', OLD.reason)
    OR NEW.actor NOT IN ('', OLD.actor)
BEGIN
    SELECT RAISE(ABORT, 'timeline: the log does not change');
END
