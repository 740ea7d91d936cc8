-- Refuse a change of state that is neither a move of the lifecycle nor a composed one. A state that stays the same is no
-- change.
CREATE TRIGGER timeline_guard_transition
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN OLD.state <> NEW.state AND OLD.state || ' ' || NEW.state NOT IN ({pairs})
BEGIN
    SELECT RAISE(ABORT, 'timeline: this transition is not allowed');
END
