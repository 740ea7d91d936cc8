-- A run of a machine makes only moves that are in the table of edges, or enters its state again; one move at a time, and none
-- after the run has ended.
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
