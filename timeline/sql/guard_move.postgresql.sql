-- A run of a machine moves as its table says, one move at a time, and not once it has ended.
CREATE OR REPLACE TRIGGER timeline_guard_move
BEFORE UPDATE ON timeline_timelinerun
FOR EACH ROW
WHEN (
    OLD.state IS DISTINCT FROM NEW.state
    OR OLD.state_at IS DISTINCT FROM NEW.state_at
    OR OLD.back IS DISTINCT FROM NEW.back
    OR OLD.moves IS DISTINCT FROM NEW.moves
)
EXECUTE FUNCTION timeline_refuse_move()
