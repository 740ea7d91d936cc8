-- The names of the triggers on our tables that are enabled, of the functions that statements call, and of our tables.
SELECT tgname
FROM pg_trigger
WHERE NOT tgisinternal
    AND tgenabled <> 'D'
    AND tgrelid IN (
        to_regclass('timeline_event'),
        to_regclass('timeline_timelinerun'),
        to_regclass('timeline_scheduledtask'),
        to_regclass('timeline_logentry'),
        to_regclass('timeline_runentry')
    )
UNION ALL
SELECT proname
FROM pg_proc
WHERE proname LIKE 'timeline\_%'
    AND pg_function_is_visible(oid)
UNION ALL
SELECT relname
FROM pg_class
WHERE relkind IN ('r', 'p')
    AND relname LIKE 'timeline\_%'
    AND pg_table_is_visible(oid)
