-- The entries of the moves of a run do not change. Only the actor may be made empty. Deleting them is not refused here: pruning
-- does it.
CREATE OR REPLACE TRIGGER timeline_guard_entry
BEFORE UPDATE ON timeline_runentry
FOR EACH ROW
WHEN (
    NEW.id IS DISTINCT FROM OLD.id
    OR NEW.run_id IS DISTINCT FROM OLD.run_id
    OR NEW.seq IS DISTINCT FROM OLD.seq
    OR NEW.at IS DISTINCT FROM OLD.at
    OR NEW.from_state IS DISTINCT FROM OLD.from_state
    OR NEW.to_state IS DISTINCT FROM OLD.to_state
    OR NEW.back IS DISTINCT FROM OLD.back
    OR NEW.event IS DISTINCT FROM OLD.event
    OR NEW.cause_id IS DISTINCT FROM OLD.cause_id
    OR NEW.actor NOT IN ('', OLD.actor)
)
EXECUTE FUNCTION timeline_refuse('timeline: the entries of a run do not change')
