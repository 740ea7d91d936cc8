-- Refuse a change of state that is neither a move of the lifecycle nor a composed one. A state that stays the same is no
-- change.
-- The list of moves is in the function. PostgreSQL reads the condition of a trigger anew for each statement, which would take
-- longer than writing a row. It keeps what it has read of a function.
CREATE OR REPLACE TRIGGER timeline_guard_transition
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN (OLD.state <> NEW.state)
EXECUTE FUNCTION timeline_refuse_transition()
