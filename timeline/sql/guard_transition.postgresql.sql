-- Passes the moves of the lifecycle's table, the composed ones, and an unchanged state. Its function knows which: PostgreSQL reads
-- the condition of a trigger anew for each statement, which takes longer than to write a row, and keeps what a function says.
CREATE OR REPLACE TRIGGER timeline_guard_transition
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN (OLD.state <> NEW.state)
EXECUTE FUNCTION timeline_refuse_transition()
