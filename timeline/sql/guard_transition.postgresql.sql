-- Refuse a change of state that is neither a move of the lifecycle nor a composed one. A state that stays the same is no
-- change.
-- The list of moves is in the function. PostgreSQL reads the condition of a trigger anew for each statement, which would take
-- longer than writing a row. It keeps what it has read of a function. Only the two moves that each task makes are named here:
-- so the function is not called for them.
CREATE OR REPLACE TRIGGER timeline_guard_transition
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN (OLD.state <> NEW.state AND OLD.state || ' ' || NEW.state NOT IN ('available active', 'active completed'))
EXECUTE FUNCTION timeline_refuse_transition()
