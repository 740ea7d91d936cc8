-- The entries of the moves of a run do not change. Only the actor may be made empty. Deleting them is not refused here: pruning
-- does it.
CREATE TRIGGER timeline_guard_entry
BEFORE UPDATE ON timeline_runentry
FOR EACH ROW
WHEN NEW.id IS NOT OLD.id
    OR NEW.run_id IS NOT OLD.run_id
    OR NEW.seq IS NOT OLD.seq
    OR NEW.at IS NOT OLD.at
    OR NEW.from_state IS NOT OLD.from_state
    OR NEW.to_state IS NOT OLD.to_state
    OR NEW.back IS NOT OLD.back
    OR NEW.event IS NOT OLD.event
    OR NEW.cause_id IS NOT OLD.cause_id
    OR NEW.actor NOT IN ('', OLD.actor)
BEGIN
    SELECT RAISE(ABORT, 'timeline: the entries of a run do not change');
END
