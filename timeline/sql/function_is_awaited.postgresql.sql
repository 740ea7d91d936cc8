-- Tells whether a task waits for an event of the entity. A function: PostgreSQL keeps its plan, which takes longer to make than
-- all the rest of recording an event. It sees what the statement sees that asks it.
CREATE OR REPLACE FUNCTION timeline_is_awaited(its_label text, its_id text) RETURNS boolean LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM timeline_scheduledtask
        WHERE awaits_label = its_label AND awaits_id = its_id AND awaits > '' AND state IN ('retryable', 'scheduled')
    );
END
$$
