-- Passes the moves of the lifecycle's table, the composed ones, and an unchanged state. They stand as one constant: PostgreSQL reads
-- the condition anew for each statement, and that takes as long as it has parts.
CREATE OR REPLACE TRIGGER timeline_guard_transition
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN (OLD.state <> NEW.state AND OLD.state || ' ' || NEW.state <> ALL ({pairs_array}::text[]))
EXECUTE FUNCTION timeline_refuse('timeline: this transition is not allowed')
