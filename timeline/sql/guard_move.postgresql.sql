-- A run of a machine makes only moves that are in the table of edges, or enters its state again; one move at a time, and none
-- after the run has ended. When and how a run has ended does not change; only a finished run may be opened again, as a redrive
-- does.
CREATE OR REPLACE TRIGGER timeline_guard_move
BEFORE UPDATE ON timeline_timelinerun
FOR EACH ROW
WHEN (
    OLD.state IS DISTINCT FROM NEW.state
    OR OLD.state_at IS DISTINCT FROM NEW.state_at
    OR OLD.back IS DISTINCT FROM NEW.back
    OR OLD.moves IS DISTINCT FROM NEW.moves
    OR (OLD.ended_at IS NOT NULL AND NEW.ended_at IS NULL AND OLD.end_code <> 'finished')
    OR (
        OLD.ended_at IS NOT NULL
        AND NEW.ended_at IS NOT NULL
        AND (OLD.ended_at IS DISTINCT FROM NEW.ended_at OR OLD.end_code IS DISTINCT FROM NEW.end_code)
    )
)
EXECUTE FUNCTION timeline_refuse_move()
