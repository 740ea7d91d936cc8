-- The names of the triggers on our tables that are in force, of the functions that statements call, and of our tables. A trigger
-- that only fires on a replica is not in force, nor is what was changed since it was installed: see the statement "seal".
WITH known_function AS (
    SELECT
        oid,
        proname,
        pg_function_is_visible(oid) AS is_visible,
        COALESCE(obj_description(oid, 'pg_proc'), '') NOT LIKE 'timeline %'
            OR obj_description(oid, 'pg_proc') = 'timeline ' || md5(prosrc) AS is_whole
    FROM pg_proc
    WHERE proname LIKE 'timeline\_%'
)
SELECT tgname
FROM pg_trigger
JOIN known_function ON known_function.oid = tgfoid
WHERE NOT tgisinternal
    AND tgenabled IN ('O', 'A')
    AND is_whole
    AND (
        COALESCE(obj_description(pg_trigger.oid, 'pg_trigger'), '') NOT LIKE 'timeline %'
        OR obj_description(pg_trigger.oid, 'pg_trigger')
            = 'timeline ' || md5(split_part(pg_get_triggerdef(pg_trigger.oid), ' EXECUTE FUNCTION ', 1))
    )
    AND tgrelid IN (
        to_regclass('timeline_event'),
        to_regclass('timeline_timelinerun'),
        to_regclass('timeline_scheduledtask'),
        to_regclass('timeline_logentry'),
        to_regclass('timeline_runentry')
    )
UNION ALL
SELECT proname
FROM known_function
WHERE is_visible AND is_whole
UNION ALL
SELECT relname
FROM pg_class
WHERE relkind IN ('r', 'p')
    AND relname LIKE 'timeline\_%'
    AND pg_table_is_visible(oid)
