-- A task that has ended stays as it ended; see final_function.
CREATE OR REPLACE TRIGGER timeline_guard_final
BEFORE UPDATE ON timeline_scheduledtask
FOR EACH ROW
WHEN (OLD.state IN ({final}))
EXECUTE FUNCTION timeline_refuse_ended()
