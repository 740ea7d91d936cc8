-- A run of a machine makes only moves that are in the table of edges, or enters its state again; one move at a time, and none
-- after the run has ended. When and how a run has ended does not change; only a finished run may be opened again, as a redrive
-- does.
CREATE TRIGGER timeline_guard_move
BEFORE UPDATE ON timeline_timelinerun
FOR EACH ROW
WHEN (
    OLD.state IS NOT NEW.state
    OR OLD.state_at IS NOT NEW.state_at
    OR OLD.back IS NOT NEW.back
    OR OLD.moves IS NOT NEW.moves
    OR (OLD.ended_at IS NOT NULL AND NEW.ended_at IS NULL AND OLD.end_code <> 'finished')
    OR (
        OLD.ended_at IS NOT NULL
        AND NEW.ended_at IS NOT NULL
        AND (OLD.ended_at IS NOT NEW.ended_at OR OLD.end_code IS NOT NEW.end_code)
    )
) AND (
    OLD.ended_at IS NOT NULL
    OR OLD.state = ''
    OR NEW.moves <> OLD.moves + 1
    OR (NEW.state <> OLD.state AND NOT EXISTS (
        SELECT 1 FROM timeline_edge
        WHERE timeline = OLD.timeline AND from_state = OLD.state AND to_state = NEW.state
    ))
)
BEGIN
    SELECT RAISE(ABORT, 'timeline: this machine has no such move');
END
