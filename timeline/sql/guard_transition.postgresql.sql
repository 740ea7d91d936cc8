-- Passes the moves of the lifecycle's table, the composed ones, and an unchanged state.
CREATE OR REPLACE TRIGGER timeline_guard_transition
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN (OLD.state <> NEW.state AND OLD.state || ' ' || NEW.state NOT IN ({pairs}))
EXECUTE FUNCTION timeline_refuse('timeline: this transition is not allowed')
