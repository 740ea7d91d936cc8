-- Mark each of our functions and triggers with a digest of its text, in its comment: the statement "triggers" sees by this
-- whether somebody has changed it since. The name of a trigger's table in its text is always one with its schema.
DO $$
DECLARE
    known record;
BEGIN
    FOR known IN
        SELECT oid::regprocedure AS name, md5(prosrc) AS digest
        FROM pg_proc
        WHERE proname LIKE 'timeline\_%' AND pg_function_is_visible(oid)
    LOOP
        EXECUTE format('COMMENT ON FUNCTION %s IS %L', known.name, 'timeline ' || known.digest);
    END LOOP;
    FOR known IN
        SELECT tgname AS name, tgrelid::regclass AS of_table,
            md5(split_part(pg_get_triggerdef(oid), ' EXECUTE FUNCTION ', 1)) AS digest
        FROM pg_trigger
        WHERE NOT tgisinternal
            AND tgname LIKE 'timeline\_%'
            AND tgrelid IN (
                to_regclass('timeline_event'),
                to_regclass('timeline_timelinerun'),
                to_regclass('timeline_scheduledtask'),
                to_regclass('timeline_logentry'),
                to_regclass('timeline_runentry')
            )
    LOOP
        EXECUTE format('COMMENT ON TRIGGER %I ON %s IS %L', known.name, known.of_table, 'timeline ' || known.digest);
    END LOOP;
END
$$
