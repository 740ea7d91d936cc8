-- Tell whether a task waits for an event of the entity. This is a function because PostgreSQL keeps its plan. Making the plan
-- takes longer than everything else in recording an event. The function sees the same rows as the statement that calls it.
CREATE OR REPLACE FUNCTION timeline_is_awaited(its_label text, its_id text) RETURNS boolean LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM timeline_scheduledtask
        WHERE awaits_label = its_label AND awaits_id = its_id AND awaits > '' AND state IN ('retryable', 'scheduled')
    );
END
$$
