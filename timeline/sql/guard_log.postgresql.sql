-- The entries of the log do not change. Only the reason and the actor may be made empty. The detail is not compared, because
-- erasing removes texts from it. Deleting entries is not refused here: pruning does it.
CREATE OR REPLACE TRIGGER timeline_guard_log
BEFORE UPDATE ON timeline_logentry
FOR EACH ROW
WHEN (
    NEW.id IS DISTINCT FROM OLD.id
    OR NEW.task_id IS DISTINCT FROM OLD.task_id
    OR NEW.seq IS DISTINCT FROM OLD.seq
    OR NEW.at IS DISTINCT FROM OLD.at
    OR NEW.from_state IS DISTINCT FROM OLD.from_state
    OR NEW.to_state IS DISTINCT FROM OLD.to_state
    OR NEW.attempt IS DISTINCT FROM OLD.attempt
    OR NEW.reason_code IS DISTINCT FROM OLD.reason_code
    OR NEW.reason NOT IN ('', OLD.reason)
    OR NEW.actor NOT IN ('', OLD.actor)
)
EXECUTE FUNCTION timeline_refuse('timeline: the log does not change')
