-- Passes the moves of the lifecycle's table, the composed ones, and an unchanged state.
CREATE TRIGGER timeline_guard_transition
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN OLD.state <> NEW.state AND OLD.state || ' ' || NEW.state NOT IN ({pairs})
BEGIN
    SELECT RAISE(ABORT, 'timeline: this transition is not allowed');
END
